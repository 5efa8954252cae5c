"""A graph without a model: it answers after a while, and notes each run of its node in `executed.log`."""

import asyncio
from pathlib import Path

from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph

SECONDS = 4
LOG = Path("executed.log")


def note(text: str) -> None:
    with LOG.open("a") as log:
        log.write(text + "\n")


async def answer(state: MessagesState) -> dict[str, list[AIMessage]]:
    text = str(state["messages"][-1].content)
    await asyncio.to_thread(note, text)
    tell = get_stream_writer()
    for second in range(SECONDS):
        tell({"second": second})
        await asyncio.sleep(1)
    return {"messages": [AIMessage(f"Done: {text}")]}


builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)
graph = builder.compile()
