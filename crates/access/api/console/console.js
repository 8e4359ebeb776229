// The console: watches /api/v1/events and draws what it says. Nothing is fetched from elsewhere; nothing is
// changed but by who may administer, on the page Shards.
"use strict";

const at = (id) => document.getElementById(id);
const PAGES = ["now", "map", "popularity", "jobs", "shards", "query", "health"];
// What each page does: `draw` with each status, `look` when it is opened and each `every` seconds. Pages with a file of their own add themselves.
const pages = { now: { draw: drawNow, look: drawSavings, every: 2 }, popularity: { look: drawPopularity, every: 2 }, health: { look: drawPopularity, every: 5 } };
// Workers that a cell names at most.
const NAMES_MAX = 6;
// Seconds that the chart goes back.
const BACK = 600;
// Between lines of the chart: whole numbers of the units that bytes are shown in.
const STEPS = [0, 1, 2, 3, 4].flatMap((unit) => [1, 2, 5, 10, 20, 50, 100, 200, 500].map((step) => step * 1024 ** unit));
const state = { status: null, before: null, rates: new Map(), points: [[], [], []], hits: [], segments: null, planned: null, changes: [], page: "now", chart: null };

// Numbers for people.
function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return (unit === 0 ? Math.round(value) : value.toPrecision(3)) + " " + units[unit];
}
const count = (value) => Math.round(value).toLocaleString("en");
const percent = (part, all) => (all > 0 ? Math.floor((100 * part) / all) + " %" : "–");
function duration(seconds) {
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return seconds < 60 ? `${Math.floor(seconds)} s` : `${minutes} min ${Math.floor(seconds) % 60} s`;
}

// Elements. All that comes from the cluster is text, never markup.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
function shape(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
const cell = (text, kind = "") => element("td", kind ? { class: kind } : {}, text);
// Puts rows into a table. What stays as it is is not laid out again: an update changes little of what many workers fill.
function rows(id, made, empty) {
  const body = at(id);
  const columns = () => body.closest("table").querySelectorAll("th").length;
  const wanted = made.length ? made : [element("tr", {}, element("td", { colspan: columns(), class: "none" }, empty))];
  becomeAll(body, wanted);
}
// Makes what is shown be as what was made.
function become(shown, made) {
  if (shown.nodeName !== made.nodeName) return shown.replaceWith(made);
  if (made.nodeType === Node.TEXT_NODE) {
    if (shown.data !== made.data) shown.data = made.data;
    return;
  }
  for (const name of shown.getAttributeNames()) if (!made.hasAttribute(name)) shown.removeAttribute(name);
  for (const name of made.getAttributeNames()) {
    // A style may be set by a script, and not as an attribute.
    if (name === "style") { if (shown.style.cssText !== made.style.cssText) shown.style.cssText = made.style.cssText; }
    else if (shown.getAttribute(name) !== made.getAttribute(name)) shown.setAttribute(name, made.getAttribute(name));
  }
  becomeAll(shown, [...made.childNodes]);
}
function becomeAll(shown, wanted) {
  let next = shown.firstChild;
  for (const made of wanted) {
    const now = next;
    next = now?.nextSibling ?? null;
    if (now) become(now, made);
    else shown.append(made);
  }
  while (next) {
    const gone = next;
    next = gone.nextSibling;
    gone.remove();
  }
}

// Who reads, and asking.
const token = () => sessionStorage.getItem("token") || "";
const headers = () => (token() ? { authorization: "Bearer " + token() } : {});
class Refused extends Error {}
async function ask(path, options = {}) {
  const answer = await fetch(path, { headers: headers(), cache: "no-store", ...options });
  if (answer.status === 401) throw new Refused();
  if (!answer.ok) {
    const wrong = await answer.json().catch(() => null);
    throw new Error(wrong?.message ?? `${path}: ${answer.status}`);
  }
  return answer;
}
// What a path answers, and whether the table of it is to be drawn: most answers are the ones of before.
const told = new Map();
async function news(path, id) {
  const text = await (await ask(path)).text();
  const is_new = told.get(path) !== text || at(id).rows.length === 0;
  told.set(path, text);
  return { text, is_new };
}
function login(message) {
  at("login-error").textContent = message;
  if (!at("login").open) at("login").showModal();
  at("token").focus();
}
at("login").addEventListener("close", () => {
  sessionStorage.setItem("token", at("token").value.trim());
  at("token").value = "";
  watch();
  look();
});
at("login").addEventListener("cancel", (event) => event.preventDefault());
at("leave").addEventListener("click", () => { sessionStorage.removeItem("token"); location.reload(); });

// Events, by fetch: an EventSource can't show a token.
async function watch() {
  for (;;) {
    try {
      const reader = (await ask("/api/v1/events")).body.pipeThrough(new TextDecoderStream()).getReader();
      at("leave").hidden = !token();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        const events = text.split("\n\n");
        text = events.pop();
        for (const event of events) {
          const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
          if (data) take(JSON.parse(data));
        }
      }
    } catch (error) {
      if (error instanceof Refused) {
        login(token() ? "This token may not read: it is not one, or has run out." : "");
        return;
      }
    }
    at("cluster").textContent = "no answer: trying again";
    at("cluster").className = "away";
    await new Promise((done) => setTimeout(done, 2000));
  }
}

// What happened a second between two states. What restarted counts from zero again.
function rate(key, now, field, seconds) {
  const then = state.before?.get(key)?.[field];
  return then === undefined || seconds <= 0 ? 0 : Math.max(0, now - then) / seconds;
}
function take(status) {
  const time = Date.now() / 1000;
  const seconds = state.time ? time - state.time : 0;
  const counters = new Map();
  state.rates = new Map();
  let [served, fetched, hit] = [0, 0, 0];
  for (const worker of status.workers) {
    const key = "worker " + worker.id;
    counters.set(key, { reads: worker.reads, served: worker.served_bytes, hit: worker.hit_bytes });
    const rates = { reads: rate(key, worker.reads, "reads", seconds), served: rate(key, worker.served_bytes, "served", seconds), hit: rate(key, worker.hit_bytes, "hit", seconds) };
    state.rates.set(key, rates);
    served += rates.served;
    hit += rates.hit;
  }
  for (const mount of status.mounts) {
    const key = "mount " + mount.name;
    counters.set(key, { requests: mount.requests, received: mount.counters.bytes_in });
    const rates = { requests: rate(key, mount.requests, "requests", seconds), received: rate(key, mount.counters.bytes_in, "received", seconds) };
    state.rates.set(key, rates);
    fetched += rates.received;
  }
  if (state.time) {
    const [times, of_served, of_fetched] = state.points;
    times.push(time); of_served.push(served); of_fetched.push(fetched);
    while (times[0] < time - BACK) { times.shift(); of_served.shift(); of_fetched.shift(); }
    state.hits.push([served * seconds, hit * seconds]);
    if (state.hits.length > 60) state.hits.shift();
  }
  Object.assign(state, { status, before: counters, time, served, fetched });
  draw();
}

// Pages.
function draw() {
  const { status } = state;
  if (!status) return;
  at("cluster").className = "";
  at("cluster").textContent = `${status.version}, up ${duration(status.uptime_secs)}, metadata in ${status.metadata}`;
  const problems = health(status);
  at("problems").hidden = problems === 0;
  at("problems").textContent = problems;
  pages[state.page]?.draw?.(status);
}

function drawNow(status) {
  const sum = (of) => status.workers.reduce((all, worker) => all + of(worker), 0);
  const served = sum((worker) => worker.served_bytes);
  const fetched = status.mounts.reduce((all, mount) => all + mount.counters.bytes_in, 0);
  const requests = status.mounts.reduce((all, mount) => all + mount.requests, 0);
  const reads = sum((worker) => worker.reads);
  at("served").textContent = bytes(state.served) + "/s";
  at("served-all").textContent = `${bytes(served)} in ${count(reads)} reads`;
  at("fetched").textContent = bytes(state.fetched) + "/s";
  at("fetched-all").textContent = `${bytes(fetched)} in ${count(requests)} requests`;
  const [all, hit] = state.hits.reduce(([all, hit], [more, of]) => [all + more, hit + of], [0, 0]);
  at("hits").textContent = percent(hit, all);
  rows("mounts", status.mounts.map((mount) => {
    const rates = state.rates.get("mount " + mount.name);
    const bound = mount.bound_bytes_per_sec;
    const used = bound ? element("td", {}, bar([["hot", rates.received / bound]]), element("span", { class: "under" }, `${percent(rates.received, bound)} of ${bytes(bound)}/s`)) : cell("none", "none");
    return element("tr", {}, cell(`/${mount.name}/`, "path"), cell(mount.url, "path"), cell(count(mount.requests), "n"), cell(rates.requests.toFixed(1), "n"), cell(bytes(mount.counters.bytes_in), "n"), cell(bytes(rates.received), "n"), used);
  }), "No mount yet: forebay mount add lake s3://BUCKET/PREFIX");
  drawChart();
}

// What was saved, at the price that stands there.
async function drawSavings() {
  const price = (id) => Math.min(1e12, Math.max(0, Number.parseFloat(at(id).value) || 0));
  try {
    const { saved_bytes, saved_requests, saved_seconds, saved_money } = await (await ask(`/api/v1/savings?per_gb=${price("per-gb")}&per_1000_requests=${price("per-requests")}`)).json();
    at("saved").textContent = bytes(saved_bytes);
    const waiting = saved_seconds === null ? "" : ` and ${duration(saved_seconds)} of waiting`;
    at("saved-requests").textContent = `and ${count(saved_requests)} requests${waiting}, since the workers started`;
    at("worth").textContent = saved_money >= 1 ? saved_money.toFixed(2) : saved_money.toPrecision(2);
  } catch {
    // The header says that there is no answer.
  }
}

function bar(parts) {
  const made = element("span", { class: "bar" });
  for (const [kind, share] of parts) {
    const piece = element("i", { class: kind });
    piece.style.width = Math.min(100, 100 * share).toFixed(1) + "%";
    made.append(piece);
  }
  return made;
}

async function drawPopularity() {
  try {
    const { text, is_new } = await news("/api/v1/segments?limit=500", "segments");
    if (!is_new) return;
    state.segments = JSON.parse(text);
    noteChanges(state.segments);
    listSegments();
  } catch {
    // The header says that there is no answer.
  }
}
// What the plan changed between two looks, of the segments that both saw.
function noteChanges(placement) {
  const planned = new Map(placement.segments.map((segment) => [segment.segment, segment.planned.map((part) => part.worker)]));
  for (const segment of placement.segments) {
    const [before, now] = [state.planned?.get(segment.segment), planned.get(segment.segment)];
    if (!before) continue;
    const changes = [...now.filter((worker) => !before.includes(worker)).map((worker) => "+" + short(worker)), ...before.filter((worker) => !now.includes(worker)).map((worker) => "−" + short(worker))];
    if (changes.length) state.changes.unshift({ time: new Date(), segment, changes });
  }
  state.planned = planned;
  state.changes.length = Math.min(state.changes.length, 50);
  rows("changes", state.changes.map(({ time, segment, changes }) => element("tr", {}, cell(time.toLocaleTimeString()), cell(segment.path, "path"), cell(part(segment), "n"), cell(some(changes, " "), "path"))), "Nothing yet.");
}
const short = (id) => id.slice(0, 7);
// What is everywhere is not named everywhere.
const some = (names, apart) => names.slice(0, NAMES_MAX).join(apart) + (names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : "");
const part = ({ index, row_group: rows, column }) =>
  rows === undefined ? String(index) : column === undefined ? `rows ${rows}` : `rows ${rows} column ${column}`;
// Where readers are sent, each with its part of the reads.
function readAt(segment) {
  const all = segment.routing.reduce((sum, part) => sum + part.weight, 0);
  return some(segment.routing.map((part) => (segment.routing.length > 1 ? `${short(part.worker)} ${percent(part.weight, all)}` : short(part.worker))), ", ");
}
function listSegments() {
  const placement = state.segments;
  if (!placement) return;
  const wanted = at("filter").value.toLowerCase();
  const found = placement.segments.filter((segment) => segment.path.toLowerCase().includes(wanted)).slice(0, 100);
  const most = Math.max(...placement.segments.map((segment) => segment.popularity), 1e-9);
  at("placement").textContent = `${placement.policy}, windows of ${duration(placement.window_secs)}: ${count(placement.segments_known)} segments known, ${count(placement.replicas_held)} copies held, ${count(placement.replicas_loading)} on their way`;
  rows("segments", found.map((segment) => element("tr", {},
    cell(segment.path, "path"),
    cell(part(segment), "n"),
    element("td", {}, bar([["hot", segment.popularity / most]]), element("span", { class: "under" }, segment.popularity.toFixed(2))),
    cell(count(segment.operations), "n"),
    cell(bytes(segment.bytes_read), "n"),
    cell(some(segment.held.map((held) => short(held.worker)), " ") || "–", "path"),
    cell(readAt(segment) || "as hashed", "path"),
    cell(some(segment.loading.map(short), " "), "path"))),
  wanted ? "No popular segment has that in its path." : "Nothing was read in the windows before this one.");
}

function health(status) {
  const found = [];
  const live = status.workers.filter((worker) => worker.state !== "lost");
  if (live.length === 0) found.push([true, "No worker is live: nothing is cached, and clients read shared storage themselves."]);
  for (const worker of status.workers) {
    if (worker.state === "lost") found.push([true, `Worker ${worker.address} is lost: start it again, or wait until it is forgotten.`]);
    if (worker.state === "draining") found.push([false, `Worker ${worker.address} is giving up its temporary data.`]);
    for (const warning of worker.warnings) found.push([true, `Worker ${worker.address}: ${warning}`]);
  }
  for (const what of state.segments?.unsatisfied ?? []) found.push([true, `Placement: ${what}`]);
  if (status.mounts.length === 0) found.push([false, "There is no mount yet."]);
  if (found.length === 0) found.push([false, `All ${live.length} workers are live, and nobody warns of anything.`]);
  at("findings").replaceChildren(...found.map(([is_bad, text]) => element("li", is_bad ? { class: "problem" } : {}, text)));
  return found.filter(([is_bad]) => is_bad).length;
}

function drawChart() {
  const place = at("chart");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  if (!state.chart && place.clientWidth > 0) {
    const axis = () => ({ stroke: () => css("--dim"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { show: false } });
    const series = (label, color) => ({ label, stroke: () => css(color), width: 2, value: (_, value) => (value == null ? "–" : bytes(value) + "/s"), points: { show: false } });
    state.chart = new uPlot({
      width: place.clientWidth - 16, height: 240, cursor: { points: { size: 6 } },
      scales: { y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1024)] } },
      axes: [axis(), { ...axis(), size: 80, incrs: STEPS, values: (_, values) => values.map((value) => bytes(value) + "/s") }],
      series: [{}, series("served", "--focus"), series("from shared storage", "--bad")],
    }, state.points, place);
    new ResizeObserver(() => state.chart.setSize({ width: place.clientWidth - 16, height: 240 })).observe(place);
  }
  state.chart?.setData(state.points);
}

// Which page.
function go() {
  const wanted = location.hash.slice(1);
  state.page = PAGES.includes(wanted) ? wanted : "now";
  for (const page of PAGES) at(page).hidden = page !== state.page;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === state.page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  draw();
  look();
}
// Asks for what the page shows beside the status.
function look() {
  const page = pages[state.page];
  if (!page?.look || at("login").open || document.hidden) return;
  state.looked = Date.now();
  page.look();
}
function lookAgain() {
  if (Date.now() - (state.looked ?? 0) >= (pages[state.page]?.every ?? 1) * 1000 - 100) look();
}
function toggle() {
  const dark = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = dark === "dark" ? "light" : "dark";
  localStorage.setItem("theme", document.documentElement.dataset.theme);
  state.chart?.redraw();
}
addEventListener("hashchange", go);
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select") || at("login").open) return;
  if (PAGES[Number(event.key) - 1]) location.hash = PAGES[Number(event.key) - 1];
  if (event.key === "d") toggle();
  if (event.key === "/") { event.preventDefault(); location.hash = "popularity"; setTimeout(() => at("filter").focus(), 0); }
});
at("theme").addEventListener("click", toggle);
at("filter").addEventListener("input", listSegments);
for (const [id, price] of [["per-gb", "0.02"], ["per-requests", "0.0004"]]) {
  at(id).value = localStorage.getItem(id) ?? price;
  at(id).addEventListener("input", () => { localStorage.setItem(id, at(id).value); look(); });
}
if (localStorage.getItem("theme")) document.documentElement.dataset.theme = localStorage.getItem("theme");
setInterval(lookAgain, 1000);
// When all files are there.
addEventListener("DOMContentLoaded", () => { go(); watch(); });
