// What applications do with node-redis: a cache, counters, transactions on an isolated connection, scan iterators.
// Usage: node node_redis_scenarios.js PORT, with NODE_PATH naming the folder of the packages. Ends with "ok" or an error.
"use strict";
const assert = require("node:assert/strict");
const { createClient, commandOptions, WatchError } = require("redis");

const port = Number(process.argv[2]);

async function connect() {
  const client = createClient({ socket: { host: "127.0.0.1", port, connectTimeout: 10000 } });
  client.on("error", (error) => console.error(error));
  await client.connect();
  return client;
}

async function cache(c) {
  assert.equal(await c.set("c:1", "v", { EX: 100, NX: true }), "OK");
  assert.equal(await c.set("c:1", "w", { NX: true }), null);
  assert.equal(await c.set("c:1", "w", { XX: true, GET: true, KEEPTTL: true }), "v");
  assert.ok((await c.ttl("c:1")) > 90);
  assert.deepEqual(await c.mGet(["c:1", "none"]), ["w", null]);
  const blob = Buffer.from([0, 1, 2, 255]);
  await c.set("c:blob", blob);
  assert.ok(blob.equals(await c.get(commandOptions({ returnBuffers: true }), "c:blob")));
  assert.equal(await c.getEx("c:1", { PERSIST: true }), "w");
  assert.equal(await c.ttl("c:1"), -1);
}

async function counters(c) {
  assert.equal(await c.incrBy("n", 5), 5);
  assert.equal(await c.incrByFloat("f", 1.5), "1.5");
  await c.setBit("bits", 7, 1);
  assert.equal(await c.bitCount("bits"), 1);
  assert.equal(await c.pfAdd("h", ["a", "b", "a"]), true);
  assert.equal(await c.pfCount("h"), 2);
  await assert.rejects(c.incr("c:1"), /not an integer/);
}

async function transactions(c) {
  assert.deepEqual(await c.multi().set("m", "1").incr("m").get("m").exec(), ["OK", 2, "2"]);
  const other = await connect();
  await assert.rejects(
    c.executeIsolated(async (isolated) => {
      await isolated.watch("m");
      await other.set("m", "9");
      return isolated.multi().incr("m").exec();
    }),
    WatchError,
  );
  assert.equal(await c.get("m"), "9");
  await other.quit();
}

async function scans(c) {
  await Promise.all(Array.from({ length: 300 }, (_, n) => c.set(`scan:${n}`, String(n))));
  const seen = new Set();
  for await (const key of c.scanIterator({ MATCH: "scan:*", COUNT: 10 })) seen.add(key);
  assert.equal(seen.size, 300);
  assert.equal(await c.del([...seen]), 300);
}

async function serverSide(c) {
  assert.match(await c.info("server"), /redis_version:/);
  assert.equal(await c.ping(), "PONG");
  assert.ok((await c.commandCount()) > 100);
  assert.equal((await c.configGet("maxmemory")).maxmemory, "0");
  await c.select(2);
  assert.equal(await c.dbSize(), 0);
  await c.select(0);
}

(async () => {
  const c = await connect();
  await c.flushAll();
  for (const scenario of [cache, counters, transactions, scans, serverSide]) {
    await scenario(c);
    console.log(scenario.name, "ok");
  }
  await c.quit();
  console.log("ok");
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
