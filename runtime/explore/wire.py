"""Requests that change something: who waits for them, and how they are answered."""

from typing import Final

from reattach.models.answers import NotSent, Refused, SubmitAnswer, Unknown, Unresolved
from reattach.models.events import Answered, FenceAnswered, RespondAnswered, SubmitAnswered
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from reattach.runtime.explore.world import Life, Post, World

_BUSY: Final = Failure(FailureCode.REJECTED, "too many requests", RemoteFate.NONE, retryable=True)


def owner(world: World, post: Post) -> Life | None:
    """The life that waits for the answer."""
    if post.owner == world.host.born:
        return world.host
    return next((z for z in world.zombies if z.born == post.owner), None)


def owed(world: World, life: Life) -> bool:
    """The order that this life waits for changes something, and its answer is still on its way."""
    epoch = life.epoch
    if any(post.owner == life.born and post.ident.epoch == epoch for post in world.posts):
        return True
    return any(isinstance(a, SubmitAnswered | FenceAnswered | RespondAnswered) and life.current(a) for a in life.inbox)


def orphan(posts: tuple[Post, ...], born: int) -> tuple[Post, ...]:
    """Nobody waits for the answers of this incarnation any more."""
    if all(post.owner != born for post in posts):
        return posts
    return tuple(post._replace(owner=0) if post.owner == born else post for post in posts)


def answered(post: Post, answer: SubmitAnswer) -> Answered:
    """An answer to a POST, or to a response."""
    return RespondAnswered(post.ident, answer) if post.stage == "respond" else SubmitAnswered(post.ident, answer)


def unresolved(post: Post) -> Answered:
    if post.stage == "fence":
        return FenceAnswered(post.ident, Unknown("no answer"))
    return answered(post, Unresolved("no answer"))


def not_sent(post: Post) -> Answered:
    return answered(post, NotSent("connection refused"))


def refused(post: Post) -> Answered:
    return answered(post, Refused(_BUSY))
