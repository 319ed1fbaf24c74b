"""A lock beside a file is held by one at a time, and leaves nothing behind."""

import threading
import time

from trueup._base.locking import locked


def test_a_lock_is_held_by_one_at_a_time(tmp_path):
    held, most = [], []

    def hold():
        for _ in range(20):
            with locked(tmp_path / "s.json", wait=60):
                held.append(1)
                most.append(len(held))
                time.sleep(0.0005)
                held.pop()

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (80, 1)
    assert not list(tmp_path.iterdir())
