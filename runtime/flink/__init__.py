"""The Flink host: the only package that imports pyflink."""
