"""A loopback proxy for HTTP/1.1 that cuts, holds back, doubles, answers, stalls and splits as it is told."""
