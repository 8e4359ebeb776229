// The page Shards: where the dial of each replica of a dataset stands, what it answers there, what is ordered of it, and what is made of the dataset.
"use strict";

// Points of a replica that are kept: a few minutes.
const TRAIL_MAX = 90;
const REPLICAS_MAX = 50;
const dials = { dataset: localStorage.getItem("dataset") ?? "", before: new Map(), trails: new Map(), busy: false, shown: "" };

pages.shards = { look: lookAtShards, every: 2 };
at("dataset").value = dials.dataset;
at("dataset-form").addEventListener("submit", (event) => {
  event.preventDefault();
  Object.assign(dials, { dataset: at("dataset").value.trim(), before: new Map(), trails: new Map() });
  localStorage.setItem("dataset", dials.dataset);
  lookAtShards();
});

for (const [id, method, path] of [["order-pin", "PUT", "pin"], ["order-unpin", "DELETE", "pin"], ["order-freeze", "PUT", "freeze"], ["order-thaw", "DELETE", "freeze"]]) {
  at(id).addEventListener("click", () => order(method, path, id === "order-pin" ? at("pin-size").value.trim() : ""));
}

// Orders something of the dataset that is shown.
async function order(method, path, size) {
  const dataset = dials.shown;
  const buttons = at("orders-change").querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  at("orders-state").className = "under";
  at("orders-state").textContent = "ordered: waiting for the dataset's next manifest";
  try {
    const asked = `/api/v1/shards/${path}?dataset=${encodeURIComponent(dataset)}${size ? "&size=" + encodeURIComponent(size) : ""}`;
    const done = await (await ask(asked, { method })).json();
    const missing = done.replicas === undefined || done.here === done.replicas ? "" : `: ${done.here} of ${done.replicas} replicas are there, the others come when there is room`;
    at("orders-state").textContent = `manifest ${done.manifest} of ${dataset} says so${missing}`;
  } catch (error) {
    at("orders-state").className = "bad";
    at("orders-state").textContent = error instanceof Refused ? "this token is not known any more" : error.message;
  } finally {
    for (const button of buttons) button.disabled = false;
    lookAtShards();
  }
}

at("make-refresh").addEventListener("click", () => make("refresh", ""));
at("make-reshard").addEventListener("click", () => make("reshard", at("reshard-to").value.trim()));

// Has the dataset that is shown refreshed or given other shards, and tells how that stands until it is over.
async function make(what, to) {
  const dataset = dials.shown;
  const path = `/api/v1/shards/${what}?dataset=${encodeURIComponent(dataset)}`;
  const buttons = at("makes").querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  at("makes-state").className = "under";
  at("makes-state").textContent = "beginning";
  try {
    let work = await (await ask(`${path}&timeout=5s${what === "reshard" ? "&to=" + encodeURIComponent(to) : ""}`, { method: "POST" })).json();
    while (work.state === "running") {
      at("makes-state").textContent = `${dataset}: ${work.step}`;
      await new Promise((done) => setTimeout(done, 2000));
      work = (await (await ask(path)).json()).work ?? { wrong: { message: "this process was started anew: ask again" } };
    }
    if (work.wrong) throw new Error(work.wrong.message);
    at("makes-state").textContent = work.refreshed ? refreshedWords(work) : `${dataset}: ${count(work.resharded.shards)} shards in place of ${count(work.resharded.before)}`;
  } catch (error) {
    at("makes-state").className = "bad";
    at("makes-state").textContent = error instanceof Refused ? "this token is not known any more" : error.message;
  } finally {
    for (const button of buttons) button.disabled = false;
    lookAtShards();
  }
}

function refreshedWords({ dataset, refreshed }) {
  const { objects, added, replaced, gone, changes, errors } = refreshed;
  const left = errors.length ? `; not read: ${errors.join("; ")}` : "";
  return `${dataset}: ${count(objects)} objects, of which ${count(added)} are new and ${count(replaced)} have changed; ${count(gone)} have gone; ${count(changes)} records written or deleted${left}`;
}

function drawOrders(status) {
  const { pin, frozen, ack } = status.orders;
  if (dials.shown !== status.dataset) at("orders-state").textContent = at("makes-state").textContent = "";
  dials.shown = status.dataset;
  const size = pin?.size === undefined ? "the size that each replica starts with" : `${pin.size.toFixed(2)}x of the input`;
  const said = [pin ? `Pinned at ${size} at least` : "", frozen ? "frozen: layers stay as they are" : ""].filter((what) => what);
  const acks = ack === "two-workers" ? " Changes are acknowledged when the disks of two workers have them." : "";
  at("orders-now").textContent = (said.length ? said.join("; ") + "." : "Its replicas follow their load.") + acks;
  [at("orders").hidden, at("orders-change").hidden] = [false, !status.may_order];
  [at("makes").hidden, at("make-refresh").hidden] = [!status.may_change, !status.follows];
  [at("order-unpin").hidden, at("order-freeze").hidden, at("order-thaw").hidden] = [!pin, Boolean(frozen), !frozen];
}

async function lookAtShards() {
  if (dials.busy || !dials.dataset) return;
  dials.busy = true;
  const asked = dials.dataset;
  try {
    const status = await (await ask("/api/v1/shards/status?dataset=" + encodeURIComponent(asked))).json();
    if (asked === dials.dataset) drawShards(status);
  } catch (error) {
    if (!(error instanceof Refused) && asked === dials.dataset) {
      at("shards-state").textContent = error.message;
      at("orders").hidden = at("makes").hidden = true;
      rows("replicas", [], "Name a dataset: forebay shard create makes one.");
      at("curve").replaceChildren();
    }
  } finally {
    dials.busy = false;
  }
}

function drawShards(status) {
  drawOrders(status);
  const now = Date.now() / 1000;
  const before = dials.before;
  const replicas = [];
  dials.before = new Map();
  for (const shard of status.shards) {
    for (const replica of shard.replicas) {
      const key = `${shard.shard} ${replica.worker}`;
      const then = before.get(key);
      const rate = then ? Math.max(0, replica.answered - then.answered) / (now - then.time) : 0;
      dials.before.set(key, { answered: replica.answered, time: now });
      replicas.push({ key, shard, replica, rate, dial: replica.now || (replica.bytes ? replica.bytes / shard.input_bytes : null) });
      if (then && replicas.at(-1).dial !== null) {
        const trail = dials.trails.get(key) ?? [];
        trail.push([replicas.at(-1).dial, rate]);
        if (trail.length > TRAIL_MAX) trail.shift();
        dials.trails.set(key, trail);
      }
    }
  }
  const records = status.shards.reduce((all, shard) => all + shard.records, 0);
  const calls = replicas.reduce((all, { rate }) => all + rate, 0);
  at("shards-state").textContent = `${count(status.shards.length)} shards with ${count(records)} records, manifest ${status.manifest}: ${calls.toFixed(1)} calls a second`;
  const widest = Math.max(1, ...replicas.flatMap(({ dial, replica }) => [dial ?? 0, replica.size ?? 0, replica.least ?? 0])) * 1.1;
  const busiest = [...replicas].sort((one, other) => other.replica.queue - one.replica.queue || other.rate - one.rate || one.shard.shard - other.shard.shard);
  rows("replicas", busiest.slice(0, REPLICAS_MAX).map((one) => replicaRow(one, widest)), "No replica: no worker has been asked for it yet.");
  const others = busiest.length - REPLICAS_MAX;
  at("replicas-rest").textContent = others > 0 ? `The busiest ${REPLICAS_MAX}, and ${count(others)} more that are not shown.` : "";
  drawCurve(busiest.slice(0, REPLICAS_MAX), widest);
}

function replicaRow({ shard, replica, rate, dial }, widest) {
  const track = element("span", { class: "dial", role: "meter", "aria-valuemin": "0", "aria-valuemax": widest.toFixed(2), "aria-valuenow": (dial ?? 0).toFixed(2), "aria-label": "Size" });
  const fill = element("i", { class: replica.is_changing ? "changing" : "" });
  fill.style.width = (100 * (dial ?? 0)) / widest + "%";
  track.append(fill);
  if (replica.size !== null) {
    const start = element("b", { title: "the size that it starts with" });
    start.style.left = (100 * replica.size) / widest + "%";
    track.append(start);
  }
  if (replica.least !== null && replica.least !== replica.size) {
    const least = element("b", { class: "least", title: "the size that it is pinned at, at least" });
    least.style.left = (100 * replica.least) / widest + "%";
    track.append(least);
  }
  const marks = [["pinned", replica.least !== null], ["frozen", replica.is_frozen], ["writes", shard.claim?.writer === replica.worker], ["second", shard.claim?.second === replica.worker]];
  const orders = element("td", { class: "word" }, ...marks.filter(([, is]) => is).map(([what]) => element("span", { class: "mark " + what }, what)));
  if (shard.claim?.writer === replica.worker) orders.append(element("span", { class: "under" }, claimWords(shard.claim)));
  const size = dial === null ? (replica.bytes === null ? "not asked for yet" : "not brought") : `${dial.toFixed(2)}x${replica.size === null ? ", stands in" : ` of ${replica.size.toFixed(2)}x`}${replica.is_changing ? ", changing" : ""}`;
  return element("tr", {}, cell(String(shard.shard), "n"), cell(replica.worker.slice(0, 8), "path"), orders, element("td", {}, track, element("span", { class: "under" }, size)), cell(count(replica.queue), "n"), cell(rate.toFixed(1), "n"), cell(replica.bytes === null ? "–" : bytes(replica.bytes), "n"), cell(replica.why ?? "", "under"));
}

// What the writer of a shard and its second have on their disks alone, and since when it writes.
function claimWords(claim) {
  const behind = claim.behind_objects ? `${bytes(claim.behind_bytes)} for ${(claim.behind_ms / 1000).toFixed(1)} s on two disks alone` : "all is stored";
  return `for ${duration(claim.held_ms / 1000)}: ${behind}`;
}

// Calls a second over the size: where each replica is, and where it was.
function drawCurve(replicas, widest) {
  const [width, height, left, bottom] = [Math.max(320, at("curve").clientWidth - 16), 220, 60, 26];
  const trails = replicas.map((one) => ({ ...one, trail: dials.trails.get(one.key) ?? [] })).filter(({ trail }) => trail.length);
  const most = Math.max(1, ...trails.flatMap(({ trail }) => trail.map(([, rate]) => rate))) * 1.1;
  const x = (size) => left + (size / widest) * (width - left - 10);
  const y = (rate) => height - bottom - (rate / most) * (height - bottom - 12);
  const parts = [];
  for (let tick = 0; tick <= 4; tick += 1) {
    const [size, rate] = [(widest * tick) / 4, (most * tick) / 4];
    parts.push(shape("line", { x1: left, x2: width - 10, y1: y(rate), y2: y(rate), class: "axis" }));
    parts.push(shape("text", { x: left - 6, y: y(rate) + 4, class: "label", "text-anchor": "end" }, `${rate < 10 ? rate.toFixed(1) : count(rate)}/s`));
    parts.push(shape("text", { x: x(size), y: height - 8, class: "label", "text-anchor": tick < 4 ? "middle" : "end" }, `${size.toFixed(2)}x`));
  }
  const points = trails.flatMap(({ trail }) => trail.slice(-20).map(([size, rate]) => `M${x(size).toFixed(1)} ${y(rate).toFixed(1)}h0`));
  parts.push(shape("path", { d: points.join("") || "M0 0", class: "trail" }));
  for (const { trail, shard, replica, rate } of trails) {
    const [size] = trail.at(-1);
    parts.push(shape("circle", { cx: x(size), cy: y(rate), r: 5, class: "dot" }, "", shape("title", {}, `shard ${shard.shard} on ${replica.worker}: ${rate.toFixed(1)} calls a second at ${size.toFixed(2)}x of the input`)));
  }
  at("curve").replaceChildren(shape("svg", { width, height }, ...parts));
}
