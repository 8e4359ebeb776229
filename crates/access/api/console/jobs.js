// The page Jobs: jobs, their tasks and what was seen of transfers, once a second, on one axis of time; and loads.
"use strict";

// Seconds that the picture goes back, transfers that are kept at most, and bars a worker has at a time.
const JOBS_BACK = 120;
const TRANSFERS_MAX = 400;
const LANES_MAX = 8;
// Bars that have words of their own at most: where there are more, those of a kind and a worker are one shape.
const BARS_MAX = 200;
const seen = { jobs: new Map(), tasks: [], transfers: new Map(), listed: [], busy: false };

pages.jobs = { look: lookAtJobs, every: 1 };

async function lookAtJobs() {
  if (seen.busy) return;
  seen.busy = true;
  try {
    // There are loads also where there is no scheduler.
    const loads = await news("/api/v1/load", "loads-list");
    if (loads.is_new) listLoads(JSON.parse(loads.text).loads);
    const [tasks, transfers] = await Promise.all(["/api/v1/tasks", "/api/v1/transfers"].map(async (path) => (await ask(path)).json()));
    // Nothing that may fail comes between this and the list: it is news once.
    const listed = await news("/api/v1/jobs", "jobs-list");
    const jobs = JSON.parse(listed.text);
    const now = Date.now() / 1000;
    noteJobs(jobs.jobs, now);
    noteTasks(tasks.tasks, now);
    noteTransfers(transfers.transfers, now);
    at("jobs-state").textContent = jobs.has_scheduler ? "" : "No scheduler: forebay up --cluster N, or forebay scheduler, runs statements on all executors.";
    drawTimes(now);
    if (listed.is_new) listJobs();
  } catch (error) {
    at("jobs-state").textContent = error instanceof Refused ? "" : error.message;
  } finally {
    seen.busy = false;
  }
}

// When a job began is known by how long it has been; one that was over before it was seen has no place in time.
function noteJobs(jobs, now) {
  const earlier = seen.jobs;
  seen.jobs = new Map();
  for (const job of jobs) {
    let note = earlier.get(job.id);
    if (!note && job.state !== "running") continue;
    note ??= { began: now - job.seconds, samples: [] };
    note.job = job;
    if (job.state === "running") note.samples.push([now, job.tasks_running]);
    note.ended = job.state === "running" ? null : note.began + job.seconds;
    while (note.samples[1]?.[0] < now - JOBS_BACK) note.samples.shift();
    if (note.ended === null || note.ended > now - JOBS_BACK) seen.jobs.set(job.id, note);
  }
  seen.listed = jobs;
}

// The scheduler says when each began and ended; how long a task waited for its input is not known.
function noteTasks(tasks, now) {
  const placed = tasks.map((task) => ({ ...task, began: now - task.ended_seconds_ago - task.seconds, last: now - task.ended_seconds_ago }));
  seen.tasks = placed.filter((task) => task.last > now - JOBS_BACK);
}

// One that is not there any more ended after it was last seen.
function noteTransfers(transfers, now) {
  for (const transfer of transfers) {
    const key = `${transfer.worker} ${transfer.start} ${transfer.path}`;
    const note = seen.transfers.get(key);
    if (note && now - transfer.seconds < note.last + 1) Object.assign(note, { last: now, ended: false });
    else seen.transfers.set(key, { ...transfer, began: now - transfer.seconds, last: now, ended: false });
  }
  for (const [key, note] of seen.transfers) {
    if (note.last < now) note.ended = true;
    if (note.last < now - JOBS_BACK) seen.transfers.delete(key);
  }
  for (const key of seen.transfers.keys()) {
    if (seen.transfers.size <= TRANSFERS_MAX) break;
    seen.transfers.delete(key);
  }
}

const tenths = (value) => Math.round(value * 10) / 10;

function drawTimes(now) {
  const [left, row, sub] = [150, 20, 7];
  const width = Math.max(400, at("times").clientWidth - 16);
  const x = (time) => left + Math.max(0, Math.min(1, (time - now + JOBS_BACK) / JOBS_BACK)) * (width - left - 10);
  const parts = [];
  let y = 18;
  const label = (text, about) => parts.push(shape("text", { x: 0, y: y + 13, class: "label" }, `${text.slice(0, 20)}`, shape("title", {}, about)));
  for (const note of [...seen.jobs.values()].slice(-12)) {
    const { job } = note;
    const end = note.ended ?? now;
    label(`job ${job.id}`, job.sql);
    const bar = { x: x(note.began), y: y + 3, width: Math.max(1, x(end) - x(note.began)), height: row - 6, class: `job ${job.state}` };
    parts.push(shape("rect", bar, "", shape("title", {}, `${job.state}, ${job.tasks_done} of ${job.tasks} tasks, ${job.seconds.toFixed(1)} s: ${job.sql}`)));
    const most = Math.max(1, ...note.samples.map(([, running]) => running));
    const steps = note.samples.map(([time, running], ix) => {
      const [from, to, floor] = [x(time), x(note.samples[ix + 1]?.[0] ?? end), y + row - 3];
      return running > 0 ? `M${from.toFixed(1)} ${floor}V${(floor - ((row - 6) * running) / most).toFixed(1)}H${Math.max(from + 1, to).toFixed(1)}V${floor}Z` : "";
    });
    parts.push(shape("path", { d: steps.join("") || "M0 0", class: "tasks" }, shape("title", {}, `${job.tasks_running} tasks run, ${most} at most`)));
    y += row;
  }
  const workers = new Map();
  const of = (worker) => workers.get(worker) ?? workers.set(worker, { transfers: [], tasks: [] }).get(worker);
  for (const note of seen.transfers.values()) of(note.worker).transfers.push(note);
  for (const task of seen.tasks) of(task.worker).tasks.push(task);
  // Beside each other as far as there is room, and then over each other; the height that they take.
  const are_many = seen.transfers.size + seen.tasks.length > BARS_MAX;
  const draw = (notes, about) => {
    const [ends, shapes] = [[], new Map()];
    for (const note of notes.sort((one, other) => one.began - other.began)) {
      let lane = ends.findIndex((end) => end <= note.began);
      if (lane < 0) lane = ends.length < LANES_MAX ? ends.length : LANES_MAX - 1;
      ends[lane] = note.last;
      const [kind, words] = about(note);
      const bar = { x: x(note.began), y: y + 3 + lane * sub, width: Math.max(1, x(note.last) - x(note.began)), height: sub - 1, class: kind };
      if (are_many) shapes.set(kind, `${shapes.get(kind) ?? ""}M${tenths(bar.x)} ${bar.y}h${tenths(bar.width)}v${bar.height}h-${tenths(bar.width)}z`);
      else parts.push(shape("rect", bar, "", shape("title", {}, words())));
    }
    for (const [kind, d] of shapes) parts.push(shape("path", { d, class: kind }));
    return ends.length * sub;
  };
  for (const [worker, { transfers, tasks }] of [...workers].sort(([one], [other]) => one.localeCompare(other)).slice(0, 16)) {
    label(`at ${worker}`, `${worker}: transfers to it, and below them tasks beside it`);
    const from = y;
    y += draw(transfers, (note) => [note.ended ? "transfer" : "transfer under-way", () => `${note.path} from ${count(note.start)}: ${bytes(note.bytes)} in ${(note.last - note.began).toFixed(1)} s`]);
    y += draw(tasks, (task) => [`task ${task.state}`, () => `job ${task.job}, stage ${task.stage}, ${task.partition === null ? "all partitions" : `partition ${task.partition}`}: ${task.state}, ${task.seconds.toFixed(2)} s, ${bytes(task.bytes_local)} of ${bytes(task.bytes)} were there`]);
    y = Math.max(from + row, y + 6);
  }
  for (let back = JOBS_BACK; back >= 0; back -= 30) {
    const place = x(now - back);
    parts.unshift(shape("line", { x1: place, x2: place, y1: 16, y2: y, class: "axis" }));
    parts.push(shape("text", { x: place, y: 11, class: "label", "text-anchor": back ? "middle" : "end" }, back ? `${back} s ago` : "now"));
  }
  const empty = seen.jobs.size + seen.transfers.size + seen.tasks.length === 0;
  if (empty) parts.push(shape("text", { x: left + 12, y: 40, class: "label" }, "No job and no transfer since this page was opened."));
  at("times").replaceChildren(shape("svg", { width, height: Math.max(60, y + 4) }, ...parts));
}

function listJobs() {
  const found = [...seen.listed].reverse().slice(0, 30);
  rows("jobs-list", found.map((job) => {
    const state = element("td", { class: `word state-${job.state}`, title: job.error }, job.state);
    const done = element("td", {}, bar([["decoded", job.tasks ? job.tasks_done / job.tasks : 0]]), element("span", { class: "under" }, `${count(job.tasks_done)} of ${count(job.tasks)}, ${count(job.tasks_running)} run${job.tasks_copied ? `, ${count(job.tasks_copied)} ran twice` : ""}`));
    return element("tr", {}, cell(job.id, "path word"), state, done, cell(percent(job.tasks_local, job.tasks_with_input), "n"), cell(`${bytes(job.bytes_done)} of ${bytes(job.bytes)}`, "n"), cell(job.seconds.toFixed(1) + " s", "n"), cell(job.sql.replace(/\s+/g, " ").slice(0, 160), "path"));
  }), "No jobs yet: a statement that reads enough, as by forebay sql \"..\", becomes one and runs on all executors.");
}

function listLoads(loads) {
  const found = [...loads].reverse().slice(0, 30);
  rows("loads-list", found.map((load) => {
    const part = [load.columns.join(", "), load.where ? `where ${load.where}` : ""].filter(Boolean).join(" ");
    const what = element("td", { class: "path" }, load.path, element("span", { class: "under" }, ` ${part.slice(0, 160)}`));
    const state = element("td", { class: `word state-${load.state}`, title: load.error }, load.state);
    const there = element("td", {}, bar([["decoded", load.bytes ? load.done_bytes / load.bytes : 0]]), element("span", { class: "under" }, `${bytes(load.done_bytes)} of ${bytes(load.bytes)}`));
    return element("tr", {}, what, state, there, cell(bytes(load.fetched_bytes), "n"), cell(load.seconds.toFixed(1) + " s", "n"), cell(load.who, "word"));
  }), "None was begun here: POST /api/v1/load brings data before it is asked for.");
}
