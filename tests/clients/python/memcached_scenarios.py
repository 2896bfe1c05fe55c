"""What applications do with pymemcache: a cache with expiry, compare-and-set from several threads, counters, many keys at once.

Usage: memcached_scenarios.py PORT. Ends with "ok" or an assertion.
"""

import json
import sys
import threading

from pymemcache import serde
from pymemcache.client.base import Client, PooledClient

ADDRESS = ("127.0.0.1", int(sys.argv[1]))


def connect(**options):
    return Client(ADDRESS, timeout=10, connect_timeout=10, no_delay=True, **options)


def cache(c):
    assert c.set("a", b"x", expire=100, noreply=False) is True
    assert c.get("a") == b"x" and c.get("none") is None and c.get("none", 5) == 5
    assert c.add("a", b"y", noreply=False) is False and c.add("b", b"y", noreply=False) is True
    assert c.replace("none", b"z", noreply=False) is False
    assert c.append("a", b"1", noreply=False) and c.prepend("a", b"0", noreply=False) and c.get("a") == b"0x1"
    assert c.touch("a", 200, noreply=False) is True and c.delete("a", noreply=False) is True
    assert c.delete("a", noreply=False) is False
    blob = bytes(range(256)) * 3000
    assert c.set("blob", blob, noreply=False) and c.get("blob") == blob


def many(c):
    values = {f"many{n}": str(n).encode() for n in range(1000)}
    assert c.set_many(values, noreply=False) == []
    assert c.get_many(list(values) + ["none"]) == values
    assert c.delete_many(list(values), noreply=False) is True
    assert c.get_many(list(values)) == {}


def compare_and_set(c):
    c.set("sum", b"0", noreply=False)

    def add():
        mine = connect()
        for _ in range(50):
            while True:
                value, token = mine.gets("sum")
                if mine.cas("sum", str(int(value) + 1).encode(), token, noreply=False):
                    break

    adders = [threading.Thread(target=add) for _ in range(4)]
    for adder in adders:
        adder.start()
    for adder in adders:
        adder.join()
    assert c.get("sum") == b"200"


def counters(c):
    c.set("n", b"10", noreply=False)
    assert c.incr("n", 5) == 15 and c.decr("n", 20) == 0 and c.incr("none", 1) is None


def objects(c):
    s = connect(serde=serde.pickle_serde)
    s.set("object", {"a": [1, 2, 3]}, noreply=False)
    assert s.get("object") == {"a": [1, 2, 3]}
    j = connect(serializer=lambda k, v: (json.dumps(v).encode(), 7), deserializer=lambda k, v, f: (json.loads(v), f))
    j.set("json", {"x": 1}, noreply=False)
    assert j.get("json") == ({"x": 1}, 7)


def server_side(c):
    assert c.version()
    stats = c.stats()
    assert int(stats[b"cmd_get"]) > 0 and int(stats[b"curr_items"]) > 0
    pool = PooledClient(ADDRESS, max_pool_size=4, timeout=10)
    assert pool.set("pooled", b"x", noreply=False) and pool.get("pooled") == b"x"
    assert c.flush_all(noreply=False) is True


c = connect()
for scenario in (cache, many, compare_and_set, counters, objects, server_side):
    scenario(c)
    print(scenario.__name__, "ok")
c.quit()
print("ok")
