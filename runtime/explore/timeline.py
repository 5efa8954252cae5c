"""A counterexample, for people: one line per move."""

from reattach.models.events import Requested
from reattach.runtime.explore.scenario import START_MS, Move, Violation
from reattach.runtime.explore.search import Found
from reattach.runtime.explore.world import Post, World


def timeline(found: Found) -> str:
    """The whole story, with the time in units since the start."""
    lines = [f"{found.name}: {found.text}"]
    now = 0
    for number, move in enumerate(found.path):
        if isinstance(move.world, World):
            now = move.world.now_ms - START_MS
        mark = "!" if move.fault else " "
        lines.append(f"{number:3d} t={now:<3d}{mark} {_what(move)}{_where(move)}")
    return "\n".join(lines)


def _what(move: Move) -> str:
    kind, *rest = move.what
    return f"{kind} " + " ".join(_word(item) for item in rest)


def _word(item: object) -> str:
    if isinstance(item, Post):
        order = f"{item.ident.incarnation} epoch {item.ident.epoch}, slot {item.inv.slot}, by {item.by_ms - START_MS}"
        return f"{item.stage} of life-{item.owner or '?'} ({order})"
    if isinstance(item, Requested):
        return item.request.invocation_id
    return str(item)


def _where(move: Move) -> str:
    if isinstance(move.world, Violation):
        return f"  => {move.world}"
    world = move.world
    parts = []
    for life in (world.host, *world.zombies):
        state = life.state
        if state is None:
            text = "nothing"
        elif state.active is not None:
            call = state.active
            text = f"{call.id} {call.leaf.value} epoch {call.epoch}" + (" permit" if call.tenure.permit else "")
        else:
            text = state.mode
        parts.append(f"{life.name}{'(zombie)' if life.dies_at_ms else ''} {text}")
    turns = ", ".join(f"{t.marker} {t.phase.value}{' hidden' if t.hidden_until_ms else ''}" for t in world.memory.turns)
    return f"  | {'; '.join(parts)} | remote: {turns or '-'}"
