"""The command line's entry point: commands, and what happens to their errors.

An error is one line on standard error that says what to do; `--debug` shows the traceback as well.
Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 130 and 143 stopped by Ctrl-C or SIGTERM, 141 when
whoever read the output has gone.
"""

import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import Abort, TyperException

from reattach import __version__
from reattach.models.errors import ConfigError, ReattachError
from reattach.runtime.cli import (
    adapters,
    agent,
    bench,
    control,
    demo,
    diagram,
    explain,
    explore,
    inspect,
    mutants,
    replay,
    run,
    simulate,
    timeline,
    watch,
)

FAILED, USAGE, INTERRUPTED, PIPE_CLOSED, TERMINATED = 1, 2, 130, 141, 143


class Terminated(BaseException):
    """SIGTERM came: whatever was started is to be ended on the way out."""


app = typer.Typer(
    name="reattach",
    help="Durable remote-agent calls for Apache Flink: submit once, re-attach after a crash.",
    epilog="Start with `reattach demo`. Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 130 stopped.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"reattach {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options before the command."""


app.command("run")(run.command)
app.command("adapters")(adapters.command)
app.command("agent")(agent.command)
app.command("bench")(bench.command)
app.command("control")(control.command)
app.command("demo")(demo.command)
app.command("diagram")(diagram.command)
app.command("explain")(explain.command)
app.command("explore")(explore.command)
app.command("inspect")(inspect.command)
app.command("mutants")(mutants.command)
app.command("replay")(replay.command)
app.command("simulate")(simulate.command)
app.command("timeline")(timeline.command)
app.command("watch")(watch.command)


def main(arguments: Sequence[str]) -> int:
    """Run one command line.

    Args:
        arguments: without the program's name.

    Returns:
        The exit code; see the module's text.
    """
    try:
        code = app(args=list(arguments), prog_name="reattach", standalone_mode=False)
    except TyperException as error:
        # Without a command the help has been shown, and there is nothing to add.
        message = error.format_message()
        return _say(message + _hint(arguments), error.exit_code) if message else error.exit_code
    except ReattachError as error:
        return _fail(arguments, str(error), USAGE if isinstance(error, ConfigError) else FAILED)
    except (KeyboardInterrupt, Abort):
        return _say("stopped", INTERRUPTED)
    except Terminated:
        return _say("stopped", TERMINATED)
    except SystemExit as end:
        # Those that typer raises itself: it has told a shell how a word may go on, or whoever read our output has gone,
        # which is to be taken for no verdict.
        return 0 if end.code == 0 else PIPE_CLOSED
    except Exception as error:
        return _fail(arguments, f"{type(error).__name__}: {_first_line(error)} (--debug shows where)", FAILED)
    return code if isinstance(code, int) else 0


def _first_line(error: Exception) -> str:
    try:
        return (str(error).strip().splitlines() or [""])[0]
    except Exception:
        # Some foreign errors ask a process for their text, which may be gone.
        return "its text is lost"


def _fail(arguments: Sequence[str], message: str, code: int) -> int:
    if "--debug" in arguments:
        traceback.print_exc()
    return _say(message, code)


def _say(message: str, code: int) -> int:
    sys.stderr.write(f"{message}\n" if code in (INTERRUPTED, TERMINATED) else f"error: {message}\n")
    return code


def _hint(arguments: Sequence[str]) -> str:
    command = next((one for one in arguments if not one.startswith("-")), "")
    known = command in {registered.name for registered in app.registered_commands}
    return f" (see reattach {command} --help)" if known else " (see reattach --help)"


def _terminate(*_: object) -> None:
    raise Terminated


def entry() -> None:
    """Run the command line of this process."""
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(main(sys.argv[1:]))
