"""The faults of the conformance kit, by their names in the tests."""

from collections.abc import Mapping
from typing import Final

from reattach.runtime.proxy.faults import Answer, Cut, Fault, Hold, Where

ELSEWHERE: Final = "/elsewhere"
JSON: Final = {"Content-Type": "application/json"}
SAYS: Final = b'{"error":{"message":"a gateway says so"}}'
PACKED: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + b"\x00" * 64


def _cuts(reset: bool) -> dict[str, Fault]:
    end = "RST" if reset else "FIN"
    return {
        f"cut by {end} before anything was forwarded": Cut(Where.BEFORE, reset=reset),
        f"cut by {end} after the first byte of the body": Cut(Where.REQUEST, 1, reset=reset),
        f"cut by {end} before the last byte of the body": Cut(Where.REQUEST, -1, reset=reset),
        f"cut by {end} when all was forwarded": Cut(Where.SENT, reset=reset),
        f"answer lost by {end}": Cut(Where.ANSWERED, reset=reset),
        f"cut by {end} within the head of the answer": Cut(Where.HEAD, reset=reset),
    }


def _gateway(code: int, *, forward: bool = False) -> Answer:
    headers = {**JSON, "Retry-After": "1"} if code in (429, 503) else JSON
    return Answer(code, headers, SAYS, forward=forward)


# No status arrives at the client.
NO_ANSWER: Final[Mapping[str, Fault]] = {
    **_cuts(False),
    **_cuts(True),
    "no HTTP": Answer(raw=b"\x00\xffSSH-2.0-hello\r\n\r\n", forward=True),
}
# A status arrives; of the body only a part.
CUT_BODIES: Final[Mapping[str, Fault]] = {
    "cut behind the head of the answer": Cut(Where.BODY, 0),
    "cut after the first byte of the answer's body": Cut(Where.BODY, 1),
    "cut after ten bytes of the answer's body": Cut(Where.BODY, 10),
    "reset after ten bytes of the answer's body": Cut(Where.BODY, 10, reset=True),
    "cut where the answer's body ends": Cut(Where.BODY, 2**30),
}
HELD: Final[Mapping[str, Fault]] = {"held back": Hold(), "held back, reset": Hold(reset=True)}
# A gateway answers, and the server knows nothing of it.
IN_ITS_STEAD: Final[Mapping[str, Fault]] = {
    f"{code} in the server's stead": _gateway(code) for code in (408, 409, 429, 500, 502, 503, 504)
}
# The server has taken it, and a gateway answers.
AFTER_IT: Final[Mapping[str, Fault]] = {
    f"{code} after the server took it": _gateway(code, forward=True) for code in (408, 500, 502, 503, 504)
}
REDIRECTS: Final[Mapping[str, Fault]] = {
    **{
        f"{code} to elsewhere": Answer(code, {**JSON, "Location": ELSEWHERE}, SAYS)
        for code in (301, 302, 303, 307, 308)
    },
    **{
        f"{code} to elsewhere after the server took it": Answer(
            code, {**JSON, "Location": ELSEWHERE}, SAYS, forward=True
        )
        for code in (302, 303)
    },
}
# A 200 that no server of any protocol means.
NONSENSE: Final[Mapping[str, Answer]] = {
    "a page in HTML": Answer(200, {"Content-Type": "text/html"}, b"<html>sign in</html>"),
    "an empty body": Answer(200, JSON, b""),
    "half of a JSON value": Answer(200, JSON, b'{"status": "comp'),
    "JSON 100,000 deep": Answer(200, JSON, b'{"status":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "no UTF-8": Answer(200, JSON, b'{"status": "\xff\xfe\xfa"}'),
    "a number of 10,000 digits": Answer(200, JSON, b'{"status": ' + b"9" * 10_000 + b"}"),
    "NaN": Answer(200, JSON, b'{"status": NaN}'),
    "null": Answer(200, JSON, b"null"),
    "a JSON text": Answer(200, JSON, b'"completed"'),
    "a lone surrogate": Answer(200, JSON, b'{"status": "\\ud800"}'),
    "a body that says it is packed": Answer(200, {**JSON, "Content-Encoding": "gzip"}, PACKED),
    "a charset of no meaning": Answer(
        200, {"Content-Type": "application/json; charset=\xfftf-\x00".replace("\x00", "0")}, b"{"
    ),
}
NOT_FOUND: Final[Mapping[str, Answer]] = {
    "404 as a page in HTML": Answer(404, {"Content-Type": "text/html"}, b"<html>no such page</html>"),
    "404 with an empty body": Answer(404, {}, b""),
}
_EVENTS: Final = {"Content-Type": "text/event-stream"}
LONG: Final[Mapping[str, Answer]] = {
    "an endless body": Answer(200, JSON, b" " * 65_536, repeat=0),
    "an endless text": Answer(200, JSON, b"x" * 65_536, repeat=0),
    "100 MB": Answer(200, JSON, b" " * 65_536, repeat=1_526),
    "an endless stream without an event": Answer(
        200, {"Content-Type": "text/event-stream"}, b": " + b"x" * 65_534, repeat=0
    ),
    "an endless page of an error": Answer(500, {"Content-Type": "text/html"}, b"x" * 65_536, repeat=0),
}


def echoes(secret: str) -> dict[str, Answer]:
    """Answers of a remote that repeats the credential in whatever it says."""
    said = secret.encode()
    rpc = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"%b"}}' % said
    return {
        "in an error": Answer(500, JSON, b'{"error":{"message":"%b is wrong"},"detail":"%b"}' % (said, said)),
        "in a refusal": Answer(401, {**JSON, "WWW-Authenticate": f"Bearer {secret}"}, b'{"detail":"%b"}' % said),
        "in the words of a status": Answer(
            200, JSON, b'{"status":"%b","state":"%b","id":"%b"}' % (said, said, said), forward=True
        ),
        "in text": Answer(400, {"Content-Type": "text/plain"}, b"no such token: " + said),
        "in headers": Answer(302, {"Location": f"/{secret}", "X-Token": secret}, b""),
        "in a JSON-RPC error": Answer(200, JSON, rpc),
    }
