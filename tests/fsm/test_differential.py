"""The compiled table against the declared chart: random walks must come to the same record."""

from typing import Any

from hypothesis import given
from statemachine.exceptions import TransitionNotAllowed

from reattach.fsm.draft import Draft
from reattach.fsm.env import Env
from reattach.fsm.guards import GUARDS
from reattach.fsm.lifecycle import Lifecycle
from reattach.fsm.notes import NOTES
from reattach.fsm.step import event_name, step
from reattach.fsm.table import SETTLING, TABLE
from reattach.models.events import Event
from reattach.models.invocation import Invocation
from reattach.models.lifecycle import Leaf
from tests.fsm.walks import Walk, walks


class Model:
    """Lets the declared machine call the same guards and notes, one draft per event."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.state = draft.leaf.name.lower()


def _bind(kind: type, name: str, function: Any) -> None:
    setattr(kind, name, lambda self: function(self.draft))


for _name, _function in {**GUARDS, **NOTES}.items():
    _bind(Model, _name, _function)


def by_chart(inv: Invocation, event: Event, env: Env) -> tuple[Leaf, Draft] | None:
    """Let the library's own engine take the step; None when it refuses the event."""
    draft = Draft(inv, event, env)
    machine = Lifecycle(model=Model(draft), start_value=inv.leaf.name.lower())
    try:
        machine.send(event_name(event))
    except TransitionNotAllowed:
        return None
    leaf = _current(machine)
    if leaf is Leaf.SU_PARKED:
        draft.leaf = leaf
        try:
            machine.send(SETTLING)
        except TransitionNotAllowed:
            pass
    return _current(machine), draft


def _current(machine: Lifecycle) -> Leaf:
    (leaf,) = [state.id for state in machine.configuration if not state.states]
    return Leaf[leaf.upper()]


NOTED = tuple(sorted(set(Draft.__slots__) - {
    "leaf", "steps", "epoch", "effects", "wake_at_ms", "entered_ms", "spent_ms", "env", "event", "answer", "pause_ms",
    "ask", "result", "source", "incarnation", "permit", "fenced", "sends_end_ms", "ordered_at_ms", "known_at_ms",
    "probes", "cancels", "response", "streams",
}))  # fmt: skip


@given(walks(most=25))
def test_table_and_chart_agree(walk: Walk) -> None:
    for inv, event, env in walk:
        if inv.leaf.terminal or inv.tenure.incarnation != env.incarnation:
            continue
        if event_name(event) not in TABLE[inv.leaf]:
            continue
        result = step(inv, event, env)
        if result.invocation is inv:
            continue
        expected = by_chart(inv, event, env)
        assert expected is not None
        leaf, draft = expected
        assert result.invocation.leaf is leaf
        for name in NOTED:
            assert getattr(result.invocation, name) == getattr(draft, name), name
        # An order makes an odd number even.
        assert result.invocation.streams in (draft.streams, draft.streams + draft.streams % 2)
