// What applications do with ioredis: sessions, automatic pipelines, transactions, scan streams, reconnecting.
// Usage: node ioredis_scenarios.js PORT, with NODE_PATH naming the folder of the packages. Ends with "ok" or an error.
"use strict";
const assert = require("node:assert/strict");
const Redis = require("ioredis");

const port = Number(process.argv[2]);
const connect = (options = {}) => new Redis({ host: "127.0.0.1", port, commandTimeout: 10000, ...options });

async function sessions(r) {
  await r.set("s:1", JSON.stringify({ user: 1 }), "EX", 100);
  assert.deepEqual(JSON.parse(await r.get("s:1")), { user: 1 });
  assert.ok((await r.ttl("s:1")) > 90);
  assert.equal(await r.set("s:1", "x", "NX"), null);
  assert.equal(await r.getdel("s:1"), JSON.stringify({ user: 1 }));
}

async function pipelines(r) {
  const p = r.pipeline();
  for (let n = 0; n < 2000; n++) p.set(`p:${n}`, n).get(`p:${n}`);
  const replies = await p.exec();
  replies.forEach(([error, value], at) => {
    assert.equal(error, null);
    assert.equal(value, at % 2 ? String((at - 1) / 2) : "OK");
  });
  const auto = connect({ enableAutoPipelining: true });
  const values = await Promise.all(Array.from({ length: 500 }, (_, n) => auto.get(`p:${n}`)));
  assert.deepEqual(values, Array.from({ length: 500 }, (_, n) => String(n)));
  auto.disconnect();
}

async function transactions(r) {
  const replies = await r.multi().incr("t").incrby("t", 5).get("t").exec();
  assert.deepEqual(replies, [[null, 1], [null, 6], [null, "6"]]);
  const failed = await r.multi().set("w", "x").incr("w").exec();
  assert.match(failed[1][0].message, /not an integer/);
  const other = connect();
  await r.watch("t");
  await other.set("t", 100);
  assert.equal(await r.multi().incr("t").exec(), null);
  other.disconnect();
}

async function scans(r) {
  await r.mset(Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`scan:${n}`, n])));
  const seen = new Set();
  for await (const keys of r.scanStream({ match: "scan:*", count: 10 })) keys.forEach((k) => seen.add(k));
  assert.equal(seen.size, 300);
}

async function binary(r) {
  const blob = Buffer.from(Array.from({ length: 100000 }, (_, n) => n % 256));
  await r.set(Buffer.from([0, 255, 13, 10]), blob);
  assert.ok(blob.equals(await r.getBuffer(Buffer.from([0, 255, 13, 10]))));
}

async function reconnects(r) {
  const id = await r.client("ID");
  const admin = connect();
  await admin.client("KILL", "ID", id);
  assert.equal(await r.ping(), "PONG");
  assert.notEqual(await r.client("ID"), id);
  admin.disconnect();
}

(async () => {
  const r = connect();
  await r.flushall();
  for (const scenario of [sessions, pipelines, transactions, scans, binary, reconnects]) {
    await scenario(r);
    console.log(scenario.name, "ok");
  }
  await r.quit();
  console.log("ok");
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
