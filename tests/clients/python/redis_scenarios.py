"""What applications do with redis-py: sessions, a cache with expiry, a rate limiter, counters, scans, pipelines, both protocol versions.

Usage: redis_scenarios.py PORT PROTOCOL. Ends with "ok" or an assertion.
"""

import sys
import threading
import time

import redis

PORT, PROTOCOL = int(sys.argv[1]), int(sys.argv[2])


def connect(**options):
    return redis.Redis(host="127.0.0.1", port=PORT, protocol=PROTOCOL, socket_timeout=10, **options)


def sessions(r):
    for user in range(200):
        r.set(f"session:{user}", f'{{"user": {user}}}', ex=1800)
    assert r.get("session:7") == b'{"user": 7}'
    assert 1700 < r.ttl("session:7") <= 1800
    assert r.getex("session:7", ex=3600) == b'{"user": 7}'
    assert r.ttl("session:7") > 3500
    assert r.delete("session:7") == 1 and r.get("session:7") is None
    assert r.expire("session:8", 10, nx=True) is False and r.persist("session:8") is True


def cache(r):
    assert r.set("cache:a", "x", px=40) is True
    assert r.set("cache:a", "y", nx=True) is None
    time.sleep(0.1)
    assert r.get("cache:a") is None
    assert r.set("cache:a", "y", nx=True) is True
    assert r.set("cache:a", "z", get=True) == b"y"
    assert r.mget("cache:a", "cache:none") == [b"z", None]
    blob = bytes(range(256)) * 4000
    assert r.set("cache:blob", blob) and r.get("cache:blob") == blob
    assert r.getrange("cache:blob", 255, 257) == b"\xff\x00\x01"


def rate_limiter(r):
    def allowed(user, limit):
        with r.pipeline(transaction=True) as p:
            p.incr(f"rate:{user}")
            p.expire(f"rate:{user}", 60, nx=True)
            count, _ = p.execute()
        return count <= limit

    assert [allowed("u", 3) for _ in range(5)] == [True, True, True, False, False]
    assert 0 < r.ttl("rate:u") <= 60


def optimistic_lock(r):
    r.set("stock", 40)

    def buy():
        mine = connect()
        for _ in range(10):
            while True:
                with mine.pipeline() as p:
                    try:
                        p.watch("stock")
                        left = int(p.get("stock"))
                        p.multi()
                        p.set("stock", left - 1)
                        p.execute()
                        break
                    except redis.WatchError:
                        continue

    buyers = [threading.Thread(target=buy) for _ in range(4)]
    for buyer in buyers:
        buyer.start()
    for buyer in buyers:
        buyer.join()
    assert r.get("stock") == b"0"


def counters(r):
    assert r.incr("hits") == 1 and r.incrby("hits", 41) == 42 and r.decr("hits") == 41
    assert r.incrbyfloat("price", 10.5) == 10.5 and r.incrbyfloat("price", 0.1) == 10.6
    try:
        r.set("word", "abc")
        r.incr("word")
        raise AssertionError("INCR of a word must fail")
    except redis.ResponseError as error:
        assert str(error) == "value is not an integer or out of range", error
    for day, users in enumerate(([1, 2, 3], [2, 3, 4])):
        for user in users:
            r.setbit(f"active:{day}", user, 1)
    assert r.bitop("AND", "both", "active:0", "active:1") == 1 and r.bitcount("both") == 2
    r.pfadd("visitors", *[f"v{n}" for n in range(1000)])
    assert 970 < r.pfcount("visitors") < 1030
    assert r.bitfield("bf").set("u8", 0, 200).incrby("u8", 0, 100).execute() == [0, 44]


def scans(r):
    names = {f"scan:{n}".encode() for n in range(500)}
    r.mset({name: "x" for name in names})
    assert set(r.scan_iter(match="scan:*", count=17)) == names
    assert set(r.keys("scan:*")) == names
    assert r.type("scan:1") == b"string" and r.exists("scan:1", "scan:2", "none") == 2
    assert r.unlink(*names) == 500


def pipelines(r):
    with r.pipeline(transaction=False) as p:
        for n in range(5000):
            p.set(f"pipe:{n}", n)
            p.get(f"pipe:{n}")
        replies = p.execute()
    assert replies[1::2] == [str(n).encode() for n in range(5000)]


def server_side(r):
    assert r.ping() and r.echo("x") == b"x" and r.time()[0] > 1_600_000_000
    info = r.info()
    assert info["redis_version"] and info["connected_clients"] >= 1
    assert r.config_get("maxmemory")["maxmemory"] == "0"
    assert r.client_setname("python") and r.client_getname() in ("python", b"python")
    assert any(c["name"] == "python" for c in r.client_list())
    assert r.dbsize() > 0
    other = connect(db=3)
    other.set("in3", 1)
    assert r.get("in3") is None and other.dbsize() == 1
    assert r.dump("hits") and r.restore("copy", 0, r.dump("hits")) and r.get("copy") == b"41"
    assert r.object("encoding", "hits") in (b"int", "int")
    assert r.command_count() > 100


def text(r):
    t = connect(decode_responses=True)
    t.set("text", "grüße")
    assert t.get("text") == "grüße" and t.strlen("text") == 7


r = connect()
r.flushall()
for scenario in (sessions, cache, rate_limiter, optimistic_lock, counters, scans, pipelines, server_side, text):
    scenario(r)
    print(scenario.__name__, "ok")
print("ok")
