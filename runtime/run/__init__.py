"""`reattach run`: keeps one Flink job going until every request has its outcome.

The job itself is built in `reattach.runtime.flink.job`; this package watches its folders from
outside, knows when it is done, and says what happens. It imports no Flink before a job starts.
"""
