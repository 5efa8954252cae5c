"""A graph for LangGraph's development server; what it does stands in `tests.servers.behaviour`.

Raw inputs work as in other people's graphs: `{"messages": [{"role": "user", "content": "hello"}]}`.
"""

# mypy: disable-error-code="import-not-found, misc"
# LangGraph is in the server's environment only.

import asyncio
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from tests.servers import behaviour


class State(MessagesState):
    """Messages, and how many turns the thread has had: equal ids replace a message, but never a turn."""

    turns: int
    asked: str


async def work(state: State, config: RunnableConfig) -> dict[str, Any]:
    """One turn."""
    message = state["messages"][-1]
    text, turn = _text(message.content), state.get("turns", 0) + 1
    wish = behaviour.wish(text)
    await _record("message", text, config, turn=turn, message=message.id)
    tell = get_stream_writer()
    for tick in range(wish.ticks):
        tell({"tick": tick})
        await asyncio.sleep(behaviour.TICK_S)
    if "!fail" in wish.modes:
        raise RuntimeError(behaviour.FAILURE)
    if "?ask" in wish.modes:
        return {"turns": turn, "asked": text}
    return {"turns": turn, "asked": "", "messages": [AIMessage(behaviour.reply(turn, text))]}


async def ask(state: State, config: RunnableConfig) -> dict[str, Any]:
    """A question to people. The node runs again when the answer is there, up to here without effect."""
    answer = interrupt({"question": behaviour.QUESTION})
    turn, text = state["turns"], state["asked"]
    await _record("answer", _text(answer), config, turn=turn)
    return {"asked": "", "messages": [AIMessage(behaviour.reply(turn, text, _text(answer)))]}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part if isinstance(part, str) else part.get("text", "") for part in content)
    return content if isinstance(content, str) else str(content)


async def _record(kind: str, text: str, config: RunnableConfig, *, turn: int, message: str | None = None) -> None:
    # The server refuses what blocks its loop, a write to a file included.
    thread = str(config["configurable"]["thread_id"])
    await asyncio.to_thread(behaviour.record, kind, text, thread=thread, turn=turn, message=message)


def _next(state: State) -> str:
    return "ask" if state["asked"] else END


_builder = StateGraph(State)
_builder.add_node("work", work)
_builder.add_node("ask", ask)
_builder.add_edge(START, "work")
_builder.add_conditional_edges("work", _next, ["ask", END])
_builder.add_edge("ask", END)
graph = _builder.compile()
