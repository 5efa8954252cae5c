"""An agent behind the A2A SDK 0.3, which people still run: protocol 0.3 by JSON-RPC at /.

What it does stands in `tests.servers.behaviour`.
"""

# mypy: disable-error-code="import-not-found, misc"
# The SDK is in the server's environment only.

import asyncio
import json
import os
from collections import Counter

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, DataPart, Message, Part, TextPart
from a2a.utils import new_agent_text_message, new_task

from tests.servers import behaviour


class Agent(AgentExecutor):
    """Turns are counted by context; a question keeps its turn until the answer is there."""

    def __init__(self) -> None:
        self._turns: Counter[str] = Counter()
        self._asked: dict[str, tuple[int, str]] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """One message: a turn, or the answer to the question of one."""
        message = context.message
        text = _text(message)
        task = context.current_task
        if task is not None:
            turn, asked = self._asked.pop(task.id)
            behaviour.record("answer", text, thread=task.context_id, turn=turn, message=message.message_id)
            updater = TaskUpdater(event_queue, task.id, task.context_id)
            await updater.start_work()
            await _complete(updater, behaviour.reply(turn, asked, text))
            return
        thread = context.context_id
        self._turns[thread] += 1
        turn = self._turns[thread]
        behaviour.record("message", text, thread=thread, turn=turn, message=message.message_id)
        wish = behaviour.wish(text)
        if "!message" in wish.modes:
            await asyncio.sleep(wish.ticks * behaviour.TICK_S)
            await event_queue.enqueue_event(new_agent_text_message(behaviour.reply(turn, text), thread))
            return
        task = new_task(message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if "!reject" in wish.modes:
            await updater.reject(_said(updater, "the message asked for a refusal"))
            return
        await _work(updater, wish)
        if "!failed" in wish.modes:
            await updater.failed(_said(updater, behaviour.FAILURE))
            return
        if wish.modes & {"?ask", "?auth"}:
            self._asked[task.id] = (turn, text)
            demand = updater.requires_auth if "?auth" in wish.modes else updater.requires_input
            # Without `final` a stream of this SDK waits for what never comes.
            await demand(_said(updater, behaviour.QUESTION), final=True)
            return
        await _complete(updater, behaviour.reply(turn, text))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the task; the SDK stops the execution."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def _work(updater: TaskUpdater, wish: behaviour.Wish) -> None:
    await updater.start_work()
    for tick in range(wish.ticks):
        if "!chunks" in wish.modes:
            parts = [Part(root=TextPart(text=f"tick{tick} "))]
            await updater.add_artifact(parts, artifact_id="ticks", name="ticks", append=tick > 0)
        else:
            await updater.start_work(_said(updater, f"tick {tick}"))
        await asyncio.sleep(behaviour.TICK_S)
    if "!fail" in wish.modes:
        raise RuntimeError(behaviour.FAILURE)


async def _complete(updater: TaskUpdater, text: str) -> None:
    await updater.add_artifact([Part(root=TextPart(text=text))], artifact_id="result", name="result")
    await updater.complete()


def _said(updater: TaskUpdater, text: str) -> Message:
    return updater.new_agent_message([Part(root=TextPart(text=text))])


def _text(message: Message) -> str:
    """The text, or the data as JSON if there is no text."""
    parts = [part.root for part in message.parts]
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    return "\n".join(texts or [json.dumps(part.data) for part in parts if isinstance(part, DataPart)])


_card = AgentCard(
    name="echo",
    description="Does what a message's text asks for.",
    version="1.0.0",
    url=os.environ["REATTACH_TEST_URL"] + "/",
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain", "application/json"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="echo", name="echo", description="Echoes.", tags=["test"])],
)
app = A2AStarletteApplication(_card, DefaultRequestHandler(Agent(), InMemoryTaskStore())).build()
