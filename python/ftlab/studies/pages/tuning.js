// The page of a search: its front, its course, what the parameters account for, and what was tried.

const OBJECTIVES = DATA.objectives, PARAMETERS = DATA.parameters, TRIALS = DATA.trials;
const NAMES = [...PARAMETERS.map((each) => each.name), ...OBJECTIVES.map((each) => each.text)];
const SHOWN = OBJECTIVES.map(({ unit }, at) => unitOf(TRIALS.map((trial) => trial.values?.[at] ?? null), unit));
const within = (value, at) => value / SHOWN[at].of;
const title = (at) => titled(OBJECTIVES[at].text, SHOWN[at].name);
const state = { x: 0, y: Math.min(1, OBJECTIVES.length - 1) };
const TRIED = TRIALS.filter((trial) => trial.number > 0);
const indexOf = (name) => OBJECTIVES.findIndex((each) => each.text === name);
// Values of ranges are shown as numbers in a unit that suits them, choices as names.
const RANGES = new Map(PARAMETERS.filter((each) => !each.values).map((each) =>
  [each.name, unitOf(TRIALS.map((trial) => trial.parameters[each.name] ?? null), each.unit)]));
const nameOf = (each) => titled(each.name, RANGES.get(each.name)?.name);
const valueOf = (trial, name) => {
  const value = trial.parameters[name];
  return value === undefined ? null : RANGES.has(name) ? value / RANGES.get(name).of : value;
};
const textOf = (trial, name) => {
  const value = valueOf(trial, name);
  return typeof value === "number" ? number(value) : value ?? "-";
};
const cellOf = (trial, name) => valueOf(trial, name) ?? (trial.values && indexOf(name) >= 0 ? within(trial.values[indexOf(name)], indexOf(name)) : null);
const saidOf = (trial) => [(trial.number ? `trial ${trial.number}` : "default") + (trial.best ? ", best" : trial.front ? ", on the front" : trial.feasible ? "" : ", not allowed"),
  ...PARAMETERS.filter((each) => each.name in trial.parameters).map(({ name }) => `${name} = ${textOf(trial, name)} ${RANGES.get(name)?.name || ""}`.trim()),
  ...OBJECTIVES.map((each, at) => `${each.text}: ${trial.values ? number(within(trial.values[at], at)) : "-"} ${SHOWN[at].name}`)].join("\n");
const better = (a, b, at) => (OBJECTIVES[at].maximize ? a > b : a < b);
const goal = (at) => `${title(at)}, ${OBJECTIVES[at].maximize ? "more" : "less"} is better`;

// The CSS class of the mark with which a trial is drawn.
function mark(trial, x, y) {
  const [kind, glyph] = trial.best ? ["best", "diamond"] : trial.number === 0 ? ["default", "diamond"]
    : !trial.feasible ? ["refused", "cross"] : trial.front ? ["front", "dot"] : ["tried", "dot"];
  return point(x, y, kind, saidOf(trial), glyph);
}
const LEGEND = [["Pareto front", "front", "dot"], ["best", "best", "diamond"], ["default configuration", "default", "diamond"],
  ["other trials", "tried", "dot"], ["not allowed", "refused", "cross"]];
const order = (trial) => (trial.best ? 4 : trial.number === 0 ? 3 : trial.front ? 2 : trial.feasible ? 1 : 0);

function drawFront() {
  const { x, y } = state;
  const there = TRIALS.filter((trial) => trial.values).sort((a, b) => order(a) - order(b));
  if (OBJECTIVES.length < 2) return fill("front", missing("One objective: the best trial is the whole front; see how it was found below."));
  if (!there.length) return fill("front", missing("No trial came out."));
  const at = (trial, of) => within(trial.values[of], of);
  const axis = (of) => ({ title: goal(of), values: there.map((trial) => at(trial, of)), log: OBJECTIVES[of].log, unit: SHOWN[of].name });
  const picture = plot(widthOf("front"), 420, axis(x), axis(y), (group, across, up) => {
    const front = there.filter((trial) => trial.front).sort((a, b) => at(a, x) - at(b, x));
    if (front.length > 1 && OBJECTIVES.length === 2) {
      // Nothing is known between two trials of the front, so the line between them is a step on the worse side.
      const steps = front.flatMap((trial, place) => {
        const here = [across.at(at(trial, x)), up.at(at(trial, y))];
        if (!place) return [here];
        const before = [across.at(at(front[place - 1], x)), up.at(at(front[place - 1], y))];
        return [OBJECTIVES[x].maximize ? [before[0], here[1]] : [here[0], before[1]], here];
      });
      group.append(line(steps, "front"));
    }
    there.forEach((trial) => group.append(mark(trial, across.at(at(trial, x)), up.at(at(trial, y)))));
  });
  return fill("front", legend(LEGEND.filter(([, kind]) => picture.querySelector(`.point.${kind}`))), picture);
}

function drawHistory() {
  const width = widthOf("history");
  const wide = width > 640 && OBJECTIVES.length > 1 ? Math.floor((width - 12) / 2) : width;
  const pictures = OBJECTIVES.map((each, of) => {
    const there = TRIED.filter((trial) => trial.values);
    if (!there.length) return missing("No trial came out.");
    const y = { title: title(of), values: there.map((trial) => within(trial.values[of], of)), log: OBJECTIVES[of].log, unit: SHOWN[of].name };
    return h("figure", {}, plot(wide, 260, { title: "trial", values: TRIED.map((trial) => trial.number) }, y, (group, across, up) => {
      let best = null;
      const course = [];
      for (const trial of there.filter((one) => one.feasible)) {
        const value = trial.values[of];
        if (best === null || better(value, best, of)) {
          if (best !== null) course.push([across.at(trial.number), up.at(within(best, of))]);
          best = value;
          course.push([across.at(trial.number), up.at(within(best, of))]);
        }
      }
      if (best !== null) course.push([across.at(TRIED.at(-1).number), up.at(within(best, of))]);
      if (course.length > 1) group.append(line(course, "front"));
      there.forEach((trial) => group.append(mark(trial, across.at(trial.number), up.at(within(trial.values[of], of)))));
    }));
  });
  fill("history", legend([["best so far", "front"], ...LEGEND.filter(([, kind]) => kind !== "default")]), h("div", { class: "panels" }, ...pictures));
}

function drawImportance() {
  const names = PARAMETERS.map((each) => each.name);
  const width = widthOf("importance"), left = Math.min(Math.max(...names.map((name) => name.length)) * WIDE + 16, width * 0.4);
  const bar = 14, step = OBJECTIVES.length * (bar + 2) + 12, height = names.length * step + 10;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img" }, svg("title", {}, "importance of the parameters"));
  names.forEach((name, place) => {
    picture.append(svg("text", { class: "tick", x: left - 8, y: place * step + step / 2 + 4, "text-anchor": "end" }, cut(name, left - 10)));
    OBJECTIVES.forEach((each, at) => {
      const share = DATA.importance[name][at], length = Math.max(share * (width - left - 60), 1), y = place * step + 6 + at * (bar + 2);
      const said = `${name}\n${Math.round(share * 100)} % of the variance of ${each.text}\nlies between its values`;
      picture.append(svg("rect", { class: `bar ${colour(6 - at)}`, x: left, y, width: length, height: bar, "data-said": said }),
        svg("text", { class: "tick", x: left + length + 6, y: y + 11 }, `${Math.round(share * 100)} %`));
    });
  });
  fill("importance", legend(OBJECTIVES.map((each, at) => [each.text, colour(6 - at)])), picture);
}

function drawTrials() {
  const fits = filterOf($("filter").value, NAMES, cellOf);
  const rows = TRIALS.filter(fits);
  $("count").textContent = `${number(rows.filter((trial) => trial.number).length)} of ${number(TRIED.length)} trials`;
  const columns = [
    ["trial", (trial) => trial.number, (trial) => (trial.number ? number(trial.number) : "default"), true],
    ...PARAMETERS.map((each) => [nameOf(each), (trial) => valueOf(trial, each.name), (trial) => textOf(trial, each.name), !each.values]),
    ...OBJECTIVES.map((each, at) => [title(at), (trial) => trial.values?.[at] ?? null, (trial) => (trial.values ? number(within(trial.values[at], at)) : "-"), true]),
    ["is", order, (trial) => (trial.best ? "best" : trial.front ? "front" : trial.error || (trial.feasible ? "" : "not allowed")), false],
  ];
  const kindOf = (trial) => (trial.best ? "best" : trial.number === 0 ? "default" : "");
  table("table", columns, TRIALS.filter((trial) => trial.front || trial.number === 0), kindOf);
  table("trials", columns, rows, kindOf);
  const dimensions = [
    ...PARAMETERS.map((each) => ({ title: nameOf(each), labels: each.values, log: each.log, text: number, cell: (trial) => valueOf(trial, each.name) })),
    ...OBJECTIVES.map((each, at) => ({ title: title(at), log: each.log, cell: (trial) => trial.values?.[at] ?? null, text: (value) => number(within(value, at)) })),
  ];
  const drawn = rows.filter((trial) => trial.values).sort((a, b) => order(a) - order(b));
  const kind = (trial) => (trial.best ? "best" : trial.number === 0 ? "default" : trial.front ? "front" : "tried");
  parallel("lines", dimensions, drawn, kind, saidOf);
}

function draw() {
  const choice = OBJECTIVES.map((each, at) => [at, each.text]);
  for (const [id, other] of [["x", "y"], ["y", "x"]]) {
    select(id, OBJECTIVES.length > 2 ? choice : [], state[id], (value) => {
      if (Number(value) === state[other]) state[other] = state[id];
      state[id] = Number(value);
      draw();
    });
  }
  drawFront();
  drawHistory();
  drawImportance();
  drawTrials();
}

$("filter").placeholder = PARAMETERS.slice(0, 2).map(({ name, values }) => (values ? `${name}=${values.at(-1)}` : `${name}<${textOf(TRIED[0], name)}`)).join(" ");
$("filter").oninput = drawTrials;
$("controls").onsubmit = (event) => event.preventDefault();
start(draw);
