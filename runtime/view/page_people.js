// What people do with keys and mouse, and what stands there from the beginning.

// Zoom

function look(from, to) {
  const size = Math.min(limit() * 1.02, Math.max(5, to - from));
  state.from = Math.min(Math.max(-limit() * 0.01, from), limit() * 1.01 - size);
  state.to = state.from + size;
  draw();
}

function zoom(factor, around = (state.from + state.to) / 2) {
  look(around - (around - state.from) * factor, around + (state.to - around) * factor);
}

function fit() {
  const call = state.shown[state.lane];
  if (!call) return;
  const began = state.own ? 0 : call.began;
  const wide = Math.max(5, endOf(call) - call.began);
  look(began - wide * 0.05, began + wide * 1.05);
}

const all = () => look(-limit() * 0.01, limit() * 1.01);

// What people do

function under(event) {
  const box = lanes.getBoundingClientRect();
  const lane = Math.floor((event.clientY - box.top + lanes.scrollTop) / ROW);
  const x = event.clientX - box.left - namesWidth();
  return { lane, x, call: state.shown[lane] };
}

/** The step whose mark or span is at a place. */
function stepAt(call, x) {
  let found = -1;
  let nearest = 7;
  call.steps.forEach((step, index) => {
    const off = placed(call, step.at) - x;
    if (off <= 0) found = index;
    if (Math.abs(off) < nearest) nearest = Math.abs(off);
  });
  const near = call.steps.findIndex((step) => nearest < 7 && Math.abs(placed(call, step.at) - x) === nearest);
  return near >= 0 ? near : found;
}

function listen() {
  lanes.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(draw).observe(lanes);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => {
    readColors();
    if (state.open) detail();
    draw();
  });
  lanes.addEventListener("click", (event) => {
    const { lane, x, call } = under(event);
    if (!call) return;
    choose(lane, x < 0 ? -1 : stepAt(call, x));
    open();
  });
  lanes.addEventListener("mousemove", (event) => {
    const { x, call } = under(event);
    const step = call && x >= 0 ? stepAt(call, x) : -1;
    say(call ? `${call.id}  ${step < 0 ? call.cause : inWords(call, call.steps[step])}` : "");
  });
  lanes.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const { x } = under(event);
    if (event.ctrlKey) zoom(event.deltaY > 0 ? 1.25 : 0.8, state.from + (x / width()) * (state.to - state.from));
    else pan((event.deltaY || event.deltaX) / width());
  }, { passive: false });
  lanes.addEventListener("keydown", laneKey);
  byId("steps").addEventListener("keydown", stepKey);
  byId("steps").addEventListener("click", (event) => {
    const one = event.target.closest(".step");
    if (one) chooseStep(Number(one.dataset.index));
  });
  byId("close").addEventListener("click", () => close());
  document.addEventListener("keydown", anyKey);
  listenToFilters();
}

const pan = (share) => look(state.from + share * (state.to - state.from), state.to + share * (state.to - state.from));

function laneKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const page = Math.max(1, Math.floor(lanes.clientHeight / ROW) - 1);
  const moves = {
    ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity,
  };
  const call = state.shown[state.lane];
  if (event.key in moves) choose(Math.min(state.shown.length - 1, state.lane + moves[event.key]));
  else if (call && event.key === "ArrowRight") chooseStep(state.step + 1);
  else if (call && event.key === "ArrowLeft") chooseStep(state.step < 0 ? call.steps.length - 1 : state.step - 1);
  else if (event.key === "Enter" || event.key === " ") open();
  else return;
  event.preventDefault();
}

function stepKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const last = state.shown[state.lane].steps.length - 1;
  const to = {
    ArrowDown: state.step + 1, ArrowRight: state.step + 1, ArrowUp: state.step - 1, ArrowLeft: state.step - 1,
    PageDown: state.step + 10, PageUp: state.step - 10, Home: 0, End: last,
  }[event.key];
  if (to === undefined) return;
  chooseStep(to);
  event.preventDefault();
}

function anyKey(event) {
  if (event.key === "Escape" && state.open) {
    close();
    return;
  }
  if (event.target.closest("input, select") || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "/") byId("find").focus();
  else if (event.key === "+" || event.key === "=") zoom(0.5);
  else if (event.key === "-") zoom(2);
  else if (event.key === "f") fit();
  else if (event.key === "0") all();
  else return;
  event.preventDefault();
}

function listenToFilters() {
  const on = (id, name) => byId(id).addEventListener("input", () => {
    state[name] = byId(id).value;
    refresh();
  });
  on("agent", "agent");
  on("thread", "thread");
  on("find", "find");
  on("order", "order");
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("axis-mode").addEventListener("input", () => {
    state.own = byId("axis-mode").value === "own";
    all();
  });
  byId("zoom-in").addEventListener("click", () => zoom(0.5));
  byId("zoom-out").addEventListener("click", () => zoom(2));
  byId("zoom-call").addEventListener("click", fit);
  byId("zoom-all").addEventListener("click", all);
  byId("clear").addEventListener("click", () => {
    byId("filters").reset();
    Object.assign(state, { agent: "", thread: "", find: "", order: byId("order").value });
    state.off.clear();
    for (const button of byId("statuses").children) button.setAttribute("aria-pressed", "true");
    refresh();
    lanes.focus();
  });
}

// What stands there from the beginning

function buildStatuses() {
  STATUSES.forEach((name, status) => {
    const count = calls.filter((call) => call.status === status).length;
    if (!count) return;
    const button = make("button");
    button.type = "button";
    button.dataset.status = name;
    button.setAttribute("aria-pressed", "true");
    const dot = make("span", undefined, "dot");
    dot.style.background = `var(--${name})`;
    button.append(dot, make("span", `${name.replace("_", " ")} ${count.toLocaleString("en")}`));
    button.addEventListener("click", () => {
      if (!state.off.delete(status)) state.off.add(status);
      button.setAttribute("aria-pressed", String(!state.off.has(status)));
      refresh();
    });
    byId("statuses").append(button);
  });
}

function buildAgents() {
  for (const agent of [...new Set(calls.map((call) => call.agent))].sort()) {
    const option = make("option", agent.length > 60 ? `${agent.slice(0, 59)}…` : agent);
    option.value = agent;
    byId("agent").append(option);
  }
}

function buildLegend() {
  const kinds = [
    ["a POST", (pen) => postMark(pen, 10, -1, true)],
    ["a probe", (pen) => probeMark(pen, 10, -13)],
    ["a new life", (pen) => lifeMark(pen, 10, -5, false)],
    ["back to an older state", (pen) => lifeMark(pen, 12, -1, true)],
    ["undone", (pen) => {
      pen.globalAlpha = 0.3;
      pen.fillStyle = colors.running;
      pen.fillRect(1, 2, 18, 12);
      pen.globalAlpha = 0.8;
      pen.fillRect(1, 7, 18, 1);
    }],
    ["waits for people", (pen) => {
      pen.fillStyle = colors.submitted;
      pen.fillRect(1, 2, 18, 12);
      hatch(pen, 1, 2, 18, 12);
    }],
  ];
  byId("legend").replaceChildren();
  for (const [text, paintIt] of kinds) {
    const item = make("li");
    const canvas = make("canvas");
    canvas.setAttribute("aria-hidden", "true");
    paintIt(sized(canvas, 20, 16));
    item.append(canvas, make("span", text));
    byId("legend").append(item);
  }
}

function begin() {
  readColors();
  const lives = data.lives.length;
  byId("summary").textContent = `${calls.length.toLocaleString("en")} call${calls.length === 1 ? "" : "s"}, `
    + `${lives.toLocaleString("en")} ${lives === 1 ? "life" : "lives"} of the host, `
    + `${iso(0).slice(0, 19)} to ${iso(whole).slice(0, 19)} UTC (${span(whole)})`;
  buildStatuses();
  buildAgents();
  buildLegend();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColors();
    buildLegend();
  });
  listen();
  refresh(null);
  all();
  lanes.focus();
}

begin();
