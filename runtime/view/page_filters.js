// Which calls are shown, which one is chosen, and its details.

// Filters

function haystack(call) {
  call.hay ??= [call.id, call.agent, call.thread, leafName(call.leaf), call.cause].join("\n").toLowerCase();
  return call.hay;
}

function refresh(chosen = state.shown[state.lane]) {
  const find = state.find.toLowerCase();
  const thread = state.thread.toLowerCase();
  state.shown = calls.filter((call) => !state.off.has(call.status)
    && (!state.agent || call.agent === state.agent)
    && (!thread || call.thread.toLowerCase().includes(thread))
    && (!find || haystack(call).includes(find)));
  if (state.order === "waiting") {
    const rank = (call) => (ended(call.leaf) ? Infinity : call.since);
    state.shown = [...state.shown].sort((a, b) => rank(a) - rank(b) || b.since - a.since);
  }
  const kept = state.shown.indexOf(chosen);
  if (kept < 0) state.step = -1;
  state.lane = Math.max(0, kept);
  const count = state.shown.length;
  byId("count").textContent = count === calls.length
    ? `${count.toLocaleString("en")} call${count === 1 ? "" : "s"}`
    : `${count.toLocaleString("en")} of ${calls.length.toLocaleString("en")} calls`;
  byId("none").hidden = count > 0;
  if (state.open && kept < 0) close(false);
  else if (kept >= 0 && state.open) reveal();
  draw();
}

function reveal() {
  const top = state.lane * ROW;
  if (top < lanes.scrollTop) lanes.scrollTop = top;
  else if (top + ROW > lanes.scrollTop + lanes.clientHeight) lanes.scrollTop = top + ROW - lanes.clientHeight;
}

function choose(lane, step = -1) {
  if (!state.shown.length) return;
  state.lane = Math.min(state.shown.length - 1, Math.max(0, lane));
  state.step = step;
  reveal();
  const call = state.shown[state.lane];
  say(step < 0 ? "" : inWords(call, call.steps[step]));
  if (state.open) detail();
  draw();
}

const say = (text) => {
  byId("hint").textContent = text;
};

// Details

function pairs(list, what) {
  list.replaceChildren();
  for (const [name, value] of what) {
    if (value === "" || value === undefined) continue;
    const told = make("dd");
    told.append(foreign(String(value)));
    list.append(make("dt", name), told);
  }
}

function open() {
  if (!state.shown.length) return;
  state.open = true;
  if (state.step < 0) state.step = state.shown[state.lane].steps.length - 1;
  byId("detail").hidden = false;
  document.querySelector("main").classList.add("open");
  detail();
  reveal();
  draw();
  byId("steps").focus();
}

function close(back = true) {
  state.open = false;
  byId("detail").hidden = true;
  document.querySelector("main").classList.remove("open");
  if (back) lanes.focus();
  draw();
}

function detail() {
  const call = state.shown[state.lane];
  if (state.step < 0) state.step = call.steps.length - 1;
  byId("name").replaceChildren(foreign(call.id));
  const posts = call.steps.filter((step) => has(step, "POST")).length;
  const over = ended(call.leaf);
  pairs(byId("facts"), [
    ["agent", call.agent], ["thread", call.thread], ["generation", call.generation],
    ["state", `${leafName(call.leaf)}, since ${iso(call.since)}${over ? "" : ` (${span(whole - call.since)})`}`],
    [over ? "how" : "why", call.cause],
    ["POSTs", `${posts} ordered`],
    ["probes", call.steps.filter((step) => has(step, "PROBE")).length],
    ["lives", new Set(call.steps.map((step) => step.life)).size],
  ]);
  tellStep(call, call.steps[state.step]);
  listSteps(call);
}

function listSteps(call) {
  const list = byId("steps");
  list.replaceChildren();
  const first = Math.max(0, Math.min(state.step - STEPS_SHOWN / 2, call.steps.length - STEPS_SHOWN));
  const behind = Math.min(call.steps.length, first + STEPS_SHOWN);
  if (first > 0) list.append(make("div", `${first} steps before`, "more"));
  for (let index = first; index < behind; index += 1) list.append(stepRow(call, index));
  if (behind < call.steps.length) list.append(make("div", `${call.steps.length - behind} steps after`, "more"));
  const chosen = list.querySelector('[aria-selected="true"]');
  list.setAttribute("aria-activedescendant", chosen.id);
  // Not scrollIntoView, which would scroll what stands around the list as well.
  const behindIt = chosen.offsetTop + chosen.offsetHeight - list.clientHeight;
  list.scrollTop = Math.min(chosen.offsetTop, Math.max(list.scrollTop, behindIt));
}

function stepRow(call, index) {
  const step = call.steps[index];
  const made = make("div", undefined, "step");
  made.setAttribute("role", "option");
  made.id = `step-${index}`;
  made.dataset.index = String(index);
  made.setAttribute("aria-selected", String(index === state.step));
  if (has(step, "LIFE") && index > 0) made.classList.add("life");
  if (has(step, "UNDONE")) made.classList.add("undone");
  made.style.borderLeftColor = colors[STATUSES[LEAF_STATUS[step.after]]];
  const moved = step.before === step.after ? "" : `→ ${leafName(step.after)}`;
  const does = [moved, texts[step.does], has(step, "UNDONE") ? "undone" : ""].filter(Boolean).join(" · ");
  made.append(make("span", String(step.number), "number"), make("span", clock(step.at), "when"),
    foreign(texts[step.says], "what"));
  if (does) made.append(make("span", does, "to"));
  return made;
}

function tellStep(call, step) {
  const [life, opened] = data.lives[step.life];
  pairs(byId("step"), [
    ["entry", step.times > 1 ? `${step.number} to ${step.number + step.times - 1}` : step.number],
    ["at", `${iso(step.at)} UTC, ${span(step.at - call.began)} after the call began`],
    ["fact", `${texts[step.event]}: ${texts[step.says]}`],
    ["from", leafName(step.before)], ["to", leafName(step.after)],
    ["ordered", texts[step.does]],
    ["generation", step.generation],
    ["life", `${texts[life]}, opened ${iso(opened)}`],
    ["note", texts[step.note]],
    ["undone", has(step, "UNDONE") ? "a later life went back behind this entry" : ""],
    ["missing", has(step, "GAP") ? "entries before this one are not in the journal" : ""],
  ]);
}

function chooseStep(index) {
  const call = state.shown[state.lane];
  choose(state.lane, Math.min(call.steps.length - 1, Math.max(0, index)));
}
