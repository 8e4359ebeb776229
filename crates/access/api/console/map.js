// The page Map: what fills the tiers of each worker, and what of which mount and table that is.
"use strict";

// Mounts, and tables, that are asked for.
const PARTS_MAX = 25;
// Steps from a little of something to as much as any worker has of it.
const SHADES = 5;
const filled = { answer: null, workers: "", listed: "", busy: false };

pages.map = { draw: drawMap, look: lookAtFilled, every: 5 };
at("workers").closest(".tall").addEventListener("scroll", () => state.status && drawMap(state.status));
at("filled-worker").addEventListener("change", drawFilled);

function drawMap(status) {
  const body = at("workers");
  const workers = status.workers.map((worker) => worker.id).join();
  if (workers !== filled.workers || body.rows.length !== status.workers.length) {
    filled.workers = workers;
    rows("workers", status.workers.map(workerRow), "No worker yet: forebay worker --coordinator HOST:7400");
    return;
  }
  // Those that are seen: others are drawn when they are scrolled to.
  const { scrollTop, clientHeight } = body.closest(".tall");
  const height = Math.max(1, body.rows[0]?.offsetHeight ?? 1);
  const [first, end] = [Math.floor(scrollTop / height), Math.ceil((scrollTop + clientHeight) / height) + 1];
  status.workers.slice(first, end).forEach((worker, place) => become(body.rows[first + place], workerRow(worker)));
}

function workerRow(worker) {
  const rates = state.rates.get("worker " + worker.id);
  const name = element("td", {}, element("span", { class: "path" }, worker.address), element("br"), element("span", { class: "under" }, worker.location));
  return element("tr", {}, name, cell(worker.state, "state-" + worker.state), tierCell(worker.dram), tierCell(worker.disk), cell(count(worker.segments), "n"), cell(rates.reads.toFixed(1), "n"), cell(bytes(rates.served), "n"), cell(percent(worker.hit_bytes, worker.served_bytes), "n"));
}

function tierCell(tier) {
  if (tier.capacity_bytes === 0) return cell("none", "none");
  const { temporary_bytes: temporary, decoded_bytes: decoded, layer_bytes: layers } = tier;
  const copies = Math.max(0, tier.used_bytes - temporary - decoded - layers);
  const kept = Math.max(0, Math.min(tier.kept_bytes - temporary, copies));
  const parts = [["cache", copies - kept], ["decoded", decoded], ["layers", layers], ["temporary", temporary], ["kept", kept]].map(([kind, of]) => [kind, of / tier.capacity_bytes]);
  return element("td", {}, bar(parts), element("span", { class: "under" }, `${bytes(tier.used_bytes)} of ${bytes(tier.capacity_bytes)}`));
}

async function lookAtFilled() {
  if (filled.busy) return;
  filled.busy = true;
  try {
    filled.answer = await (await ask(`/api/v1/filled?limit=${PARTS_MAX}`)).json();
    drawFilled();
  } catch (error) {
    at("filled-state").textContent = error instanceof Refused ? "" : error.message;
  } finally {
    filled.busy = false;
  }
}

// The workers in the order of their list, each with its place in the answer. One of which nothing is told has none.
function columns(answer) {
  const places = new Map(answer.workers.map((id, place) => [id, place]));
  const listed = (state.status?.workers ?? []).map((worker) => ({ id: worker.id, name: worker.address, place: places.get(worker.id), worker }));
  return listed.length ? listed : answer.workers.map((id, place) => ({ id, name: short(id), place }));
}

function drawFilled() {
  const { answer } = filled;
  if (!answer) return;
  const workers = columns(answer);
  offer(workers);
  const picked = workers.find((worker) => worker.id === at("filled-worker").value);
  const under = (mount) => answer.tables.filter((table) => table.path.startsWith(mount.path));
  const listed = answer.mounts.flatMap((mount) => [[mount, true], ...under(mount).map((table) => [table, false])]);
  const alone = answer.tables.filter((table) => !answer.mounts.some((mount) => table.path.startsWith(mount.path)));
  const all = [...listed, ...alone.map((table) => [table, false])].map(([part, is_mount]) => ({ part, is_mount, on: workers.map((worker) => part.by_worker[worker.place] ?? 0) }));
  all.push(...temporary(workers));
  const shown = ({ part, on }) => (picked ? on[workers.indexOf(picked)] : part.held.bytes);
  const most = Math.max(1, ...all.map(shown));
  rows("filled", all.map((row) => filledRow(row, shown(row), most, workers, picked)), "Nothing that is held was read in the last windows.");
  at("filled-state").textContent = inWords(answer);
}

// Of temporary nodes the workers themselves tell.
function temporary(workers) {
  const on = workers.map(({ worker }) => (worker ? worker.dram.temporary_bytes + worker.disk.temporary_bytes : 0));
  const sum = on.reduce((all, one) => all + one, 0);
  return sum === 0 ? [] : [{ part: { path: "/tmp/", held: { bytes: sum } }, is_mount: true, on }];
}

function filledRow({ part, is_mount, on }, shown, most, workers, picked) {
  const { bytes: all, decoded_bytes: decoded = 0, distinct_bytes: distinct, popularity } = part.held;
  const kind = distinct === undefined ? "temporary" : "cache";
  // Of one worker it is not known how much of it is decoded.
  const parts = picked ? [[kind, shown / most]] : [[kind, (all - decoded) / most], ["decoded", decoded / most]];
  const words = picked ? `${bytes(shown)} of ${bytes(all)}` : bytes(all) + (decoded ? `, ${percent(decoded, all)} decoded` : "");
  return element("tr", is_mount ? { class: "whole" } : {},
    cell(part.path, "path"),
    element("td", {}, bar(parts), element("span", { class: "under" }, words)),
    cell(distinct ? (all / distinct).toFixed(1) : "–", "n"),
    cell(popularity === undefined ? "–" : percent(popularity, filled.answer.held.popularity), "n"),
    element("td", {}, strip(on, workers, picked)));
}

// A mark for each worker, the darker the more it has of this: few shapes, however many workers there are.
function strip(on, workers, picked) {
  const most = Math.max(...on, 0);
  const shades = Array.from({ length: SHADES }, () => "");
  on.forEach((held, place) => { if (held > 0) shades[Math.ceil((SHADES * held) / most) - 1] += `M${place} 0h1v1h-1z`; });
  const first = workers[on.indexOf(most)];
  const words = most > 0 ? `on ${on.filter((held) => held > 0).length} of ${workers.length} workers, most on ${first.name}: ${bytes(most)}` : "on no worker";
  const made = shape("svg", { class: "strip", viewBox: `0 0 ${Math.max(1, on.length)} 1`, preserveAspectRatio: "none", role: "img", "aria-label": words }, shape("title", {}, words));
  shades.forEach((path, shade) => { if (path) made.append(shape("path", { d: path, class: `shade-${shade + 1}` })); });
  if (picked) made.append(shape("rect", { x: workers.indexOf(picked), y: 0, width: 1, height: 1, class: "picked" }));
  return made;
}

function inWords(answer) {
  const used = (state.status?.workers ?? []).reduce((sum, worker) => sum + worker.dram.used_bytes + worker.disk.used_bytes, 0);
  const of = used ? ` of the ${bytes(used)} in the tiers: the rest was not read in the last windows, or is no copy` : "";
  const fewer = answer.tables.length < answer.tables_known ? `; the ${answer.tables.length} tables of which most is held` : "";
  const some = answer.workers.length < answer.workers_known ? `; the ${answer.workers.length} workers that hold most` : "";
  return `${count(answer.tables_known)} tables in ${count(answer.mounts_known)} mounts, ${bytes(answer.held.bytes)}${of}${fewer}${some}`;
}

// Which workers can be picked; a list that is open stays as it is.
function offer(workers) {
  const names = JSON.stringify(workers.map(({ id, name }) => [id, name]));
  if (names === filled.listed) return;
  filled.listed = names;
  const picked = at("filled-worker").value;
  const options = workers.map(({ id, name }) => element("option", { value: id }, name));
  at("filled-worker").replaceChildren(element("option", { value: "" }, "all workers"), ...options);
  at("filled-worker").value = workers.some(({ id }) => id === picked) ? picked : "";
}
