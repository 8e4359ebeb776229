// The page Query: a statement that reads, its rows, its plan, and what workers served meanwhile.
"use strict";

// Rows that are asked for, and shown.
const ROWS_MAX = 500;
// Events until workers have told what they served: they report once a second.
const EVENTS_UNTIL_TOLD = 3;
const query = { stop: null, before: null, until: 0 };

pages.query = { draw: drawServed };
at("query-form").addEventListener("submit", (event) => { event.preventDefault(); run(); });
at("statement").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); }
});
at("query-stop").addEventListener("click", () => query.stop?.abort());

async function run() {
  const statement = at("statement").value.trim();
  if (query.stop || !statement) return;
  query.stop = new AbortController();
  const measured = at("measured").checked;
  [at("query-run").disabled, at("query-stop").hidden] = [true, false];
  at("query-state").className = "";
  at("query-state").textContent = "running";
  Object.assign(query, { before: state.status, until: Infinity });
  rows("served-by", [], "Workers tell what they served a second or two after the end.");
  try {
    const sql = measured ? "explain analyze " + statement.replace(/;\s*$/, "") : statement;
    const answer = await (await ask(`/api/v1/sql?rows=${ROWS_MAX}&timeout=5m`, { method: "POST", body: sql, signal: query.stop.signal })).json();
    showAnswer(answer, measured);
  } catch (error) {
    // The answer to the statement before is none to this one.
    at("rows-head").replaceChildren();
    at("rows").replaceChildren();
    rows("plan", [], "No plan: the statement was not answered.");
    at("query-state").className = "bad";
    at("query-state").textContent = error.name === "AbortError" ? "stopped" : error instanceof Refused ? "this token may not read" : error.message;
  } finally {
    query.stop = null;
    query.until = EVENTS_UNTIL_TOLD;
    [at("query-run").disabled, at("query-stop").hidden] = [false, true];
  }
}

function showAnswer(answer, measured) {
  const tasks = answer.read.tasks ? `, in ${count(answer.read.tasks)} tasks` : "";
  const rest = answer.is_whole ? "" : ", the first of more";
  const what = measured ? "measured" : `${count(answer.rows.length)} rows${rest}`;
  at("query-state").textContent = `${what} in ${answer.seconds.toFixed(3)} s, ${bytes(answer.read.bytes_read)} read${tasks}${answer.notice ? `; ${answer.notice}` : ""}`;
  const text = measured ? String(answer.rows.find((row) => row.plan)?.plan ?? "") : answer.plan;
  drawPlan(operators(text));
  const names = measured ? [] : answer.columns.map((column) => column.name);
  const head = element("tr", {}, ...answer.columns.slice(0, names.length).map((column) => element("th", { title: column.kind }, column.name)));
  const shown = (value) => (value === null || value === undefined ? cell("null", "none") : cell(typeof value === "object" ? JSON.stringify(value) : String(value), typeof value === "number" ? "n" : ""));
  at("rows-head").replaceChildren(head);
  at("rows").replaceChildren(...(measured ? [] : answer.rows.map((row) => element("tr", {}, ...names.map((name) => shown(row[name]))))));
}

// Lines of a plan: an operator each, indented below the one that it feeds, with numbers where it was measured.
function operators(text) {
  return text.split("\n").filter((line) => line.trim()).map((line) => {
    const depth = Math.floor((line.length - line.trimStart().length) / 2);
    const [, what, told] = line.trim().match(/^(.*?)(?:, metrics=\[(.*)\])?$/);
    const numbers = new Map();
    for (const [, name, value] of (told ?? "").matchAll(/([a-z_]+)(?:\{[^}]*\})?=([^,\]]+)/g)) if (!numbers.has(name)) numbers.set(name, value);
    const [, name, details] = what.match(/^([^:]*)(?::\s*(.*))?$/);
    return { depth, name, details: details ?? "", told: told ?? "", numbers };
  });
}

function drawPlan(found) {
  rows("plan", found.map(({ depth, name, details, told, numbers }) => {
    const operator = element("td", {}, element("span", { class: "path" }, name), element("br"), element("span", { class: "under", title: details }, details.slice(0, 140)));
    operator.style.paddingLeft = depth * 1.2 + "rem";
    const number = (...names) => { const found = names.map((name) => numbers.get(name)).find((value) => value !== undefined); return element("td", { class: found ? "n" : "n none", title: told }, found ?? "–"); };
    return element("tr", {}, operator, number("output_rows"), number("elapsed_compute"), number("time_elapsed_scanning_total"), number("bytes_scanned"));
  }), "No plan: the statement is done when it is planned.");
}

// What workers served between the statement's begin and end, whoever read it.
function drawServed(status) {
  if (!query.before || query.until === Infinity || query.until <= 0) return;
  query.until -= 1;
  const before = new Map(query.before.workers.map((worker) => [worker.id, worker]));
  rows("served-by", status.workers.map((worker) => {
    const then = before.get(worker.id) ?? { served_bytes: 0, hit_bytes: 0, reads: 0 };
    const since = (field) => Math.max(0, worker[field] - then[field]);
    return element("tr", {}, cell(worker.address, "path"), cell(count(since("reads")), "n"), cell(bytes(since("served_bytes")), "n"), element("td", {}, bar([["cache", since("served_bytes") ? since("hit_bytes") / since("served_bytes") : 0]]), element("span", { class: "under" }, percent(since("hit_bytes"), since("served_bytes")))));
  }), "No worker.");
}
