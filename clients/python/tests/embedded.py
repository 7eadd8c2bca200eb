"""Tests of the embedded generator: run by scripts/check/python.sh with the installed wheel."""

import ctypes
import http.client
import json
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from datetime import datetime, timezone
from pathlib import Path

from vesta_id import Vesta, VestaError

TIMEOUT = 60  # of anything that must not hang, in seconds


def twice(ids):
    """How many IDs are there already."""
    return len(ids) - len(set(ids))


def child(work):
    """Runs work in the child of os.fork; returns a function that waits for its answer."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            with open(writer, "w") as answer:
                json.dump(work(), answer)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)

    def wait():
        watchdog = threading.Timer(TIMEOUT, os.kill, (pid, signal.SIGKILL))
        watchdog.start()
        with open(reader) as answer:
            text = answer.read()
        status = os.waitpid(pid, 0)[1]
        watchdog.cancel()
        assert status == 0, f"the child ended with {status}"
        return json.loads(text)

    return wait


def machines(ids, generator):
    return {generator.explain(id).machine for id in ids}


def pool(folder):
    return f"sqlite:{folder}/vesta.db"  # named, so that it may be in a container


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def vesta(self, **settings):
        if "machine" not in settings:
            settings.setdefault("store", pool(self.folder))
        it = Vesta(state_dir=self.folder, **settings)
        self.addCleanup(it.close)
        return it


class Calls(InFolder):
    def test_ids_ascend_and_have_the_fields_of_the_layout(self):
        begin = datetime.now(timezone.utc).replace(microsecond=0)
        for layout in ["max-peak", "min-granularity", "snowflake", "js-safe"]:
            with Vesta(machine=7, state_dir=self.folder, layout=layout, namespace=layout) as ids:
                made = [ids.next_id() for _ in range(1000)] + ids.next_ids(5000)
                self.assertEqual(made, sorted(set(made)))
                fields = ids.explain(made[-1])
            self.assertEqual((fields.id, fields.layout, fields.machine), (made[-1], layout, 7))
            self.assertLessEqual(begin, fields.moment)

    def test_golden(self):
        fields = self.vesta().explain(2407837855670862845)
        moment = datetime(2018, 1, 4, 2, 8, 23, tzinfo=timezone.utc)
        self.assertEqual(fields[:6], (2407837855670862845, "max-peak", moment, 94990103, 0, 1021))
        self.assertEqual((fields.gen_method, fields.type, fields.version), (2, 0, 0))
        self.assertEqual(self.vesta().explain(2**64 - 1).layout, "min-granularity")

    def test_errors_say_what_to_do(self):
        for settings, said in [
            ({"layout": "max-peek"}, "is not one of max-peak"),
            ({"layout": "seata"}, "only explains IDs"),
            ({"store": "mongo://u:hunter2@h"}, "unknown scheme `mongo`"),
            ({"store": "vesta.db"}, "is not the URL of a store"),
        ]:
            with self.assertRaises(VestaError) as raised:
                Vesta(**settings)
            self.assertIn(said, str(raised.exception))
            self.assertNotIn("hunter2", str(raised.exception))
            self.assertIsNone(raised.exception.retry_after)
        ids = self.vesta(machine=7)
        for count in [0, 1_048_577]:
            with self.assertRaisesRegex(VestaError, "count must be 1 to 1048576"):
                ids.next_ids(count)
        for count in [-1, 2**64]:
            with self.assertRaises(OverflowError):
                ids.next_ids(count)
        with self.assertRaisesRegex(VestaError, "machine must be|machine"):
            self.vesta(machine=1024).next_id()
        ids.next_id()
        with self.assertRaisesRegex(VestaError, "in use"):
            self.vesta(machine=7).next_id()
        ids.close()
        ids.close()
        with self.assertRaisesRegex(VestaError, "closed"):
            ids.next_id()
        self.vesta(machine=7).next_id()

    def test_an_error_says_when_to_come_back(self):
        ids = self.vesta(machine=7, layout="sonyflake")  # 256 IDs in 10 ms: two seconds have 51,200
        with self.assertRaises(VestaError) as raised:
            ids.next_ids(1_000_000)
        self.assertGreater(raised.exception.retry_after, 0)

    def test_a_pool_gives_each_its_own_machine_id(self):
        pool = f"sqlite:{self.folder}/pool.db"
        one, two = self.vesta(store=pool), self.vesta(store=pool)
        reserved = self.vesta(store=pool, machine=7)
        found = [ids.explain(ids.next_id()).machine for ids in (one, two, reserved)]
        self.assertEqual((len(set(found)), found[2]), (3, 7))

    def test_threads_go_on_while_others_wait_and_close(self):
        ids, made = self.vesta(layout="snowflake"), []
        threads = [threading.Thread(target=lambda: made.append(ids.next_ids(20_000))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
        made = sum(made, [])
        self.assertEqual((len(made), twice(made)), (160_000, 0))

    def test_the_machine_id_is_given_back_at_the_end_of_the_process(self):
        program = "from vesta_id import Vesta; ids = Vesta(machine=9); print(ids.next_id())"
        environment = {**os.environ, "XDG_STATE_HOME": self.folder}
        environment.pop("STATE_DIRECTORY", None)
        run = lambda: subprocess.run([sys.executable, "-c", program], env=environment, check=True, stdout=subprocess.PIPE)
        first, second = int(run().stdout), int(run().stdout)
        self.assertLess(first, second)


@unittest.skipUnless(hasattr(os, "fork"), "needs fork")
class Forks(InFolder):
    def test_parent_and_children_have_machine_ids_of_their_own(self):
        ids = self.vesta()
        made, waits = ids.next_ids(10_000), []
        for _ in range(8):
            waits.append(child(lambda: [ids.next_id() for _ in range(1000)] + ids.next_ids(10_000)))
            made += ids.next_ids(10_000)
        others = [wait() for wait in waits]
        made += ids.next_ids(10_000)
        everything = made + sum(others, [])
        self.assertEqual(twice(everything), 0)
        found = [machines(one, ids) for one in others]
        self.assertTrue(all(len(one) == 1 for one in found))
        self.assertEqual(len(set.union(*found)), 8)

    def test_a_child_of_a_child_and_a_fork_before_the_first_call(self):
        ids = self.vesta()

        def generation(depth):
            made = ids.next_ids(1000) if depth % 2 else []
            wait = child(lambda: generation(depth - 1)) if depth else lambda: []
            return made + ids.next_ids(1000) + wait()

        made = generation(5)
        self.assertEqual((len(made), twice(made)), (9000, 0))

    def test_no_child_hangs_while_threads_make_ids(self):
        ids, stop, made = self.vesta(layout="min-granularity"), threading.Event(), []

        def work():
            while not stop.is_set():
                made.append(ids.next_ids(100))
                made.append([ids.next_id()])

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        waits = [child(lambda: ids.next_ids(2000)) for _ in range(20)]
        others = [wait() for wait in waits]
        stop.set()
        for thread in threads:
            thread.join(TIMEOUT)
        self.assertEqual(twice(sum(made, []) + sum(others, [])), 0)

    def test_a_fixed_machine_id_stays_with_the_parent(self):
        ids = self.vesta(machine=7)
        first = ids.next_id()

        def refused():
            try:
                return ids.next_id()
            except VestaError as error:
                return str(error)

        self.assertIn("in use", child(refused)())
        self.assertLess(first, ids.next_id())

    def test_a_fork_that_python_does_not_know_is_refused_with_sqlite(self):
        ids = self.vesta()
        ids.next_id()
        pid = ctypes.PyDLL(None).fork()
        if pid == 0:
            try:
                ids.next_id()
                os._exit(1)
            except VestaError as error:
                os._exit(0 if "was forked while its parent" in str(error) else 2)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        ids.next_id()

    def test_children_go_on_when_their_parent_closes_and_others_come(self):
        # The database and its log must stay what the children use.
        ids = self.vesta()
        ids.next_id()
        files = lambda: [os.stat(f"{self.folder}/vesta.db{end}").st_ino for end in ("", "-wal", "-shm")]
        reader, writer = os.pipe()

        def work():
            os.close(writer)
            made = ids.next_ids(1000)
            os.read(reader, 1)  # until the parent has closed
            return [made + ids.next_ids(1000), files()]

        wait = child(work)
        made = ids.next_ids(1000)
        before = files()
        ids.close()
        other = self.vesta()
        made += other.next_ids(1000)
        os.close(writer)
        others, after = wait()
        self.assertEqual((twice(made + others), after), (0, before))


@unittest.skipUnless("VESTA_TEST_STORE" in os.environ, "names a store on the network that the wheel has")
class ForksWithAStoreOnTheNetwork(Forks):
    """The parent keeps its machine ID over a fork."""

    def vesta(self, **settings):
        if "machine" not in settings:
            settings = {"store": os.environ["VESTA_TEST_STORE"], "namespace": self.folder.split("/")[-1], **settings}
        return super().vesta(**settings)

    def test_a_fork_that_python_does_not_know_is_refused_with_sqlite(self):
        ids = self.vesta()
        made = ids.next_ids(1000)
        machine = ids.explain(made[0]).machine
        pid = ctypes.PyDLL(None).fork()
        if pid == 0:
            os._exit(ids.explain(ids.next_id()).machine == machine)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(machines(ids.next_ids(1000), ids), {machine})

    def test_children_go_on_when_their_parent_closes_and_others_come(self):
        ids = self.vesta()
        made = ids.next_ids(1000)
        reader, writer = os.pipe()

        def work():
            os.close(writer)
            made = ids.next_ids(1000)
            os.read(reader, 1)  # until the parent has closed
            return made + ids.next_ids(1000)

        wait = child(work)
        ids.close()
        made += self.vesta().next_ids(1000)
        os.close(writer)
        self.assertEqual(twice(made + wait()), 0)


def batch(count):
    global ids
    return ids.next_ids(count)


def start(folder):
    global ids
    ids = Vesta(state_dir=folder, store=pool(folder))


class Containers(InFolder):
    @unittest.skipUnless(sys.platform == "linux", "signs of Linux")
    def test_a_pool_that_only_this_container_sees_is_refused(self):
        # A folder in memory is lost with its container.
        program = "from vesta_id import Vesta; import sys; print(Vesta(**eval(sys.argv[1])).next_id())"
        state = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.addCleanup(state.cleanup)
        environment = os.environ | {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}

        def run(**settings):
            settings["state_dir"] = state.name
            command = [sys.executable, "-c", program, repr(settings)]
            return subprocess.run(command, env=environment, capture_output=True, text=True)

        refused = run()
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("is lost with this container", refused.stderr)
        self.assertIn("set store= to one that all of them reach", refused.stderr)
        for settings in [{"machine": 7}, {"store": pool(state.name)}]:
            self.assertEqual(run(**settings).returncode, 0, settings)


class Pools(InFolder):
    def test_workers_of_multiprocessing(self):
        global ids
        for method in multiprocessing.get_all_start_methods():
            start(self.folder)
            made = ids.next_ids(1000)
            context = multiprocessing.get_context(method)
            inherits = method == "fork"
            with context.Pool(4, None if inherits else start, () if inherits else (self.folder,)) as pool:
                parts = pool.map(batch, [5000] * 100, chunksize=1)
                pool.close()
                pool.join()
            made += ids.next_ids(1000) + sum(parts, [])
            self.assertEqual((len(made), twice(made)), (502_000, 0), method)
            ids.close()
        # They gave their machine IDs back: a stopped pool leaves none in use.
        self.assertLessEqual(len(machines([self.vesta().next_id()], ids)), 1)


class Gunicorn(InFolder):
    """gunicorn --preload, whose master made IDs, and whose workers are killed under load."""

    def load(self, path, seconds, kills):
        """IDs received, the workers that answered, and the number of kills."""
        listener = socket.create_server(("127.0.0.1", 0))
        os.set_inheritable(listener.fileno(), True)
        command = [sys.executable, "-m", "gunicorn", "--preload", "--workers=4", "--log-level=error"]
        master = subprocess.Popen(
            [*command, f"--bind=fd://{listener.fileno()}", "app:app"],
            env={**os.environ, "VESTA_TEST_FOLDER": self.folder},
            cwd=Path(__file__).parent,
            pass_fds=[listener.fileno()],
            stderr=subprocess.DEVNULL,
        )
        received, pids, end = [], [], time.monotonic() + seconds

        def client():
            while time.monotonic() < end:
                connection = http.client.HTTPConnection(*listener.getsockname(), timeout=10)
                try:
                    connection.request("GET", path)
                    answer = json.loads(connection.getresponse().read())
                except (OSError, http.client.HTTPException, ValueError):
                    continue  # its worker was killed
                finally:
                    connection.close()
                received.extend(answer["ids"])
                pids.append(answer["pid"])

        clients = [threading.Thread(target=client) for _ in range(8)]
        for thread in clients:
            thread.start()
        killed = set()
        try:
            while any(thread.is_alive() for thread in clients):
                fresh = [pid for pid in pids[-20:] if pid not in killed]
                if fresh and len(killed) < kills:
                    killed.add(pid := random.choice(fresh))
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                clients[0].join(seconds / (kills + 1) / 2)
        finally:
            master.terminate()
            master.wait(TIMEOUT)
            listener.close()
        return received, set(pids), len(killed)

    def test_killed_workers_repeat_nothing(self):
        received, workers, killed = self.load("/", 15, 20)
        print(f"gunicorn: {len(received)} IDs of {len(workers)} workers, {killed} killed: {twice(received)} twice")
        self.assertEqual(twice(received), 0)
        self.assertGreaterEqual(killed, 15)
        self.assertGreater(len(workers), 10)

    def test_the_checker_finds_ids_that_workers_inherit(self):
        received, _, _ = self.load("/naive", 4, 0)
        print(f"planted: {len(received)} numbers from an inherited counter: {twice(received)} twice")
        self.assertGreater(twice(received), 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
