"""An expert answers in the vetting app until the interval is narrow. Here a program answers; people use a browser.

python examples/active_testing.py       (needs: pip install 'trueup[serve]')
"""

import socket
import subprocess
import sys
from pathlib import Path

import trueup as tu

# Votes and predictions as files, as `trueup serve` takes them.
data = tu.simulate.dawid_skene(n_items=300, n_labelers=5, random_state=4)
tu.write_labels(data.labels, "votes.csv")
rows = [f"{item},{said}\n" for item, said in zip(data.labels.items, data.predictions, strict=True)]
Path("predictions.csv").write_text("item,prediction\n" + "".join(rows), encoding="utf-8")

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = str(free.getsockname()[1])
address = f"http://127.0.0.1:{port}"
# A fixed noise model of one kind makes this start at once; leave it out for your own data.
serve = [sys.executable, "-m", "trueup", "serve", "votes.csv", "predictions.csv", "--port", port]
serve += ["--noise", "dawid-skene", "--half-width", "0.06"]


def token_of(who: str) -> str:
    """A token of a person for programs; people get links."""
    made = subprocess.run([*serve, "--new-token", who], capture_output=True, text=True, check=True)
    return made.stdout.split()[-1]


with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
    try:
        for line in server.stdout:
            if line.startswith("Serving"):  # it listens
                break
        ann, owner = tu.connect(address, token_of("ann")), tu.connect(address, token_of("owner"))
        answered = 0
        while answered < 60 and owner.finished is None:
            for item in ann.ask():
                ann.tell({item: int(data.truth[item])}, seconds=2.0)
                answered += 1
        low, high = owner.estimate().interval(0.95)
        print(f"{owner.n_counted} answers count; accuracy {low:.2f} to {high:.2f}")
        print(f"holds the truth: {low <= data.accuracy <= high}")
        print("why it can stop:", owner.finished)
    finally:
        server.terminate()
