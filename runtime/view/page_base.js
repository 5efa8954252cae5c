// What the page holds, words for it, and where times stand. What comes from the journal is put on the page by
// textContent only, and into canvases.
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const texts = data.texts;
const MARKS = data.marks;
const ROW = 26;
const STEPS_SHOWN = 300;
const STATUSES = ["not_started", "submitted", "running", "completed", "failed"];
const statusOf = (leaf) => STATUSES.findIndex((name) => data.leaves[leaf].startsWith(name));
const LEAF_STATUS = data.leaves.map((_, leaf) => statusOf(leaf));
const ended = (leaf) => LEAF_STATUS[leaf] >= 3;
// Leaves in which only somebody else can bring the call on.
const STUCK = data.leaves.map((name) => name === "submitted.parked" || name === "running.awaiting_input");

const calls = data.calls.map(([agent, thread, id, generation, leaf, since, cause, steps]) => ({
  agent: texts[agent], thread: texts[thread], id: texts[id], generation, leaf, since, cause: texts[cause],
  status: LEAF_STATUS[leaf], began: steps[0][2],
  steps: steps.map(([number, times, at, life, gen, before, after, event, says, does, note, marks]) => (
    { number, times, at, life, generation: gen, before, after, event, says, does, note, marks }
  )),
}));
const whole = Math.max(1, data.until_ms - data.from_ms);
const longest = calls.reduce((most, call) => Math.max(most, endOf(call) - call.began), 1);

const state = {
  shown: calls, lane: 0, step: -1, open: false, own: false, from: 0, to: whole, off: new Set(),
  agent: "", thread: "", find: "", order: "waiting",
};

function endOf(call) {
  return ended(call.leaf) ? call.steps[call.steps.length - 1].at : whole;
}

// Words

function make(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

/** Text from the journal, kept from turning what stands beside it around. */
function foreign(text, name) {
  const made = make("bdi", text, name);
  made.dir = "auto";
  return made;
}

const date = (ms) => new Date(data.from_ms + ms);

function iso(ms) {
  const at = date(ms);
  return Number.isNaN(at.getTime()) ? `${data.from_ms + ms} ms` : at.toISOString().replace("T", " ").replace("Z", "");
}

const clock = (ms) => iso(ms).slice(-12);

function span(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${Math.round(ms / 100) / 10} s`;
  const units = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];
  const seconds = Math.floor(ms / 1000);
  const [size, unit, smaller, name] = units.find(([least]) => seconds >= least);
  const rest = Math.floor((seconds % size) / smaller);
  return `${Math.floor(seconds / size)} ${unit}${rest ? ` ${rest} ${name}` : ""}`;
}

const leafName = (leaf) => (leaf < 0 ? "(nothing)" : data.leaves[leaf]);
const has = (step, mark) => (step.marks & MARKS[mark]) !== 0;

function inWords(call, step) {
  return `${clock(step.at)}, entry ${step.number}: ${texts[step.says]}`
    + (step.does === undefined || !texts[step.does] ? "" : `; ${texts[step.does]}`)
    + ` (${leafName(step.after)})`;
}

// Time and pixels

const lanes = byId("lanes");
const paint = byId("paint");
const axis = byId("axis");
const rows = byId("rows");
const pool = [];
let colors = {};

function readColors() {
  const style = getComputedStyle(document.documentElement);
  colors = {};
  for (const name of [...STATUSES, "ink", "soft", "line", "mark", "paper", "picked"]) {
    colors[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

const namesWidth = () => byId("count").offsetWidth;
const limit = () => (state.own ? longest : whole);
const width = () => Math.max(40, lanes.clientWidth - namesWidth() - 12);
const place = (at) => ((at - state.from) / (state.to - state.from)) * width();
const placed = (call, at) => place(state.own ? at - call.began : at);

function sized(canvas, wide, high) {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(high * ratio)) {
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(high * ratio);
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, wide, high);
  return pen;
}
