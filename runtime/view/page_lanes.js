// The lanes: drawn for what is on the screen, and no more.

function ticks() {
  const sizes = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5,
    36e5, 72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6, 31536e6];
  const least = ((state.to - state.from) / width()) * 96;
  const size = sizes.find((one) => one >= least) || 315360e6;
  // By the clock, ticks stand on whole minutes and hours, not on whole ones since the first entry.
  const shift = state.own ? 0 : data.from_ms % size;
  const found = [];
  for (let at = Math.ceil((state.from + shift) / size) * size - shift; at <= state.to; at += size) found.push(at);
  return { found, size };
}

function tickText(at, size) {
  if (state.own) return at === 0 ? "0" : `+${span(at)}`;
  const text = iso(at);
  if (size >= 864e5) return text.slice(0, 10);
  if (size >= 60000) return text.slice(11, 16);
  return size >= 1000 ? text.slice(11, 19) : text.slice(11, 23);
}

function drawAxis(marks) {
  const pen = sized(axis, width() + 12, 30);
  pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  pen.textBaseline = "middle";
  let free = 0;
  for (const at of marks.found) {
    const x = Math.round(place(at)) + 0.5;
    pen.strokeStyle = colors.line;
    pen.beginPath();
    pen.moveTo(x, 18);
    pen.lineTo(x, 30);
    pen.stroke();
    const text = tickText(at, marks.size);
    pen.fillStyle = colors.soft;
    const wide = pen.measureText(text).width;
    const left = Math.max(2, x - wide / 2);
    if (left >= free && left + wide < width() + 12) {
      pen.fillText(text, left, 9);
      free = left + wide + 12;
    }
  }
  if (state.own) return;
  pen.fillStyle = colors.mark;
  let last = -9;
  for (const [, at] of data.lives) {
    const x = place(at);
    if (x < 0 || x > width() || x - last < 3) continue;
    last = x;
    pen.beginPath();
    pen.moveTo(x - 4, 21);
    pen.lineTo(x + 4, 21);
    pen.lineTo(x, 28);
    pen.fill();
  }
}

// Lanes

function drawLane(pen, call, top) {
  const wide = width();
  const steps = call.steps;
  const last = steps.length - 1;
  for (let index = 0; index <= last; index += 1) {
    const step = steps[index];
    const status = LEAF_STATUS[step.after];
    const x = placed(call, step.at);
    const until = index < last ? steps[index + 1].at : endOf(call);
    const right = Math.min(wide, placed(call, Math.max(step.at, until)));
    if (right < 0 || x > wide) continue;
    const left = Math.max(0, x);
    pen.fillStyle = colors[STATUSES[status]];
    pen.globalAlpha = has(step, "UNDONE") ? 0.3 : 1;
    if (status >= 3) {
      // What comes after the end is about the thread, which waits for the run.
      if (step.before < 0 || !ended(step.before)) drawEnd(pen, status, x, top);
      if (index < last && right > left) pen.fillRect(left, top + 12, right - left, 2);
    } else {
      pen.fillRect(left, top + 7, Math.max(1, right - left), 12);
      if (STUCK[step.after]) hatch(pen, left, top + 7, right - left, 12);
      if (has(step, "UNDONE")) {
        pen.globalAlpha = 0.8;
        pen.fillRect(left, top + 12, Math.max(1, right - left), 1);
      }
    }
  }
  pen.globalAlpha = 1;
  drawMarks(pen, call, top);
}

function drawEnd(pen, status, x, top) {
  pen.beginPath();
  if (status === 3) {
    pen.arc(x, top + 13, 5, 0, 7);
    pen.fill();
    return;
  }
  pen.strokeStyle = pen.fillStyle;
  pen.lineWidth = 3;
  pen.moveTo(x - 4, top + 9);
  pen.lineTo(x + 4, top + 17);
  pen.moveTo(x + 4, top + 9);
  pen.lineTo(x - 4, top + 17);
  pen.stroke();
  pen.lineWidth = 1;
}

function hatch(pen, left, top, wide, high) {
  if (wide < 3) return;
  pen.save();
  pen.beginPath();
  pen.rect(left, top, wide, high);
  pen.clip();
  pen.strokeStyle = colors.paper;
  pen.lineWidth = 2;
  pen.beginPath();
  for (let x = left - high - (left % 8); x < left + wide; x += 8) {
    pen.moveTo(x, top + high);
    pen.lineTo(x + high, top);
  }
  pen.stroke();
  pen.restore();
  pen.lineWidth = 1;
}

function drawMarks(pen, call, top) {
  const wide = width();
  const lastAt = {};
  const apart = (kind, x) => {
    if (x < -6 || x > wide + 6 || (lastAt[kind] !== undefined && Math.abs(x - lastAt[kind]) < 2)) return false;
    lastAt[kind] = x;
    return true;
  };
  for (const step of call.steps) {
    if (!step.marks) continue;
    const x = placed(call, step.at);
    pen.globalAlpha = has(step, "UNDONE") ? 0.5 : 1;
    if (has(step, "LIFE") && step !== call.steps[0] && apart("life", x)) lifeMark(pen, x, top, has(step, "RESTORED"));
    if (has(step, "PROBE") && apart("probe", x)) probeMark(pen, x, top);
    if (has(step, "POST") && apart("post", x)) postMark(pen, x, top, true);
    if (has(step, "RESPOND") && apart("post", x)) postMark(pen, x, top, false);
  }
  pen.globalAlpha = 1;
}

function postMark(pen, x, top, filled) {
  pen.beginPath();
  pen.moveTo(x, top + 2);
  pen.lineTo(x + 5, top + 10);
  pen.lineTo(x - 5, top + 10);
  pen.closePath();
  pen.fillStyle = filled ? colors.mark : colors.paper;
  pen.strokeStyle = filled ? colors.paper : colors.mark;
  pen.fill();
  pen.stroke();
}

function probeMark(pen, x, top) {
  pen.beginPath();
  pen.arc(x, top + 21, 2.2, 0, 7);
  pen.fillStyle = colors.soft;
  pen.fill();
}

function lifeMark(pen, x, top, restored) {
  pen.strokeStyle = colors.mark;
  pen.setLineDash([3, 2]);
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x, top + 1);
  pen.lineTo(x, top + ROW - 1);
  pen.stroke();
  pen.setLineDash([]);
  pen.lineWidth = 1;
  if (!restored) return;
  pen.fillStyle = colors.mark;
  pen.beginPath();
  pen.moveTo(x - 1, top + 1);
  pen.lineTo(x - 7, top + 4.5);
  pen.lineTo(x - 1, top + 8);
  pen.fill();
}

// Rows are made once for what fits on the screen, and filled anew for what has come into view.

function row(index) {
  if (pool[index]) return pool[index];
  const made = make("div", undefined, "row");
  made.setAttribute("role", "option");
  made.id = `row-${index}`;
  const dot = make("span", undefined, "dot");
  const id = foreign("", "id");
  const leaf = make("span", undefined, "state");
  made.append(dot, id, leaf);
  rows.append(made);
  pool[index] = { made, dot, id, leaf, call: null };
  return pool[index];
}

function fill(one, call, at, top) {
  const chosen = at === state.lane;
  if (one.call !== call) {
    one.call = call;
    one.id.textContent = call.id;
    one.leaf.textContent = leafName(call.leaf);
  }
  one.dot.style.background = colors[STATUSES[call.status]];
  one.made.style.transform = `translateY(${top}px)`;
  one.made.setAttribute("aria-selected", String(chosen));
  one.made.setAttribute("aria-posinset", String(at + 1));
  one.made.setAttribute("aria-setsize", String(state.shown.length));
  one.made.hidden = false;
  if (chosen) lanes.setAttribute("aria-activedescendant", one.made.id);
}

let asked = false;
function draw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    drawNow();
  });
}

function drawNow() {
  const high = lanes.clientHeight;
  const count = state.shown.length;
  byId("space").style.height = `${Math.max(high, count * ROW)}px`;
  byId("window").style.height = `${high}px`;
  const marks = ticks();
  drawAxis(marks);
  const wide = width() + 12;
  const pen = sized(paint, wide, high);
  pen.strokeStyle = colors.line;
  pen.globalAlpha = 0.6;
  for (const at of marks.found) {
    const x = Math.round(place(at)) + 0.5;
    pen.beginPath();
    pen.moveTo(x, 0);
    pen.lineTo(x, high);
    pen.stroke();
  }
  pen.globalAlpha = 1;
  const first = Math.floor(lanes.scrollTop / ROW);
  lanes.removeAttribute("aria-activedescendant");
  let used = 0;
  for (let at = first; at < count && at * ROW - lanes.scrollTop < high; at += 1) {
    const top = at * ROW - lanes.scrollTop;
    fill(row(used), state.shown[at], at, top);
    drawLane(pen, state.shown[at], top);
    if (at === state.lane && state.step >= 0) ring(pen, state.shown[at], top);
    used += 1;
  }
  for (let index = used; index < pool.length; index += 1) pool[index].made.hidden = true;
}

function ring(pen, call, top) {
  const step = call.steps[state.step];
  const x = step ? placed(call, step.at) : -99;
  pen.strokeStyle = colors.mark;
  pen.lineWidth = 2;
  pen.strokeRect(x - 6, top + 2, 12, ROW - 4);
  pen.lineWidth = 1;
}
