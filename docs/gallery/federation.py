# %% [markdown]
# # A federation on one laptop
#
# Three hospitals and a server, four real processes on this machine: certificates, mutual TLS, sums that the server
# cannot look into, and one model for all. What you learn here is typed on four machines in the same way.

# %%
from pathlib import Path

import numpy as np

rng = np.random.default_rng(0)
for place, name in enumerate(["north", "south", "east", "public"]):
    age = rng.integers(30, 90, 800)
    pressure = np.round(rng.normal(120 + 3 * place + 0.3 * (age - 60), 15)).clip(80, 200)
    smoker = rng.random(800) < 0.3
    risk = 0.08 * (age - 60) + 0.04 * (pressure - 130) + 1.2 * smoker - 0.3
    stroke = rng.random(800) < 1 / (1 + np.exp(-risk))
    lines = ["age,pressure,smoker,stroke"]
    for years, blood, smokes, ill in zip(age, pressure, smoker, stroke, strict=True):
        lines.append(f"{years},{blood:.0f},{'yes' if smokes else 'no'},{'yes' if ill else 'no'}")
    Path(f"{name}.csv").write_text("\n".join(lines) + "\n")

# %% [markdown]
# What is public: the ranges of the columns, and how many records each hospital has. `secure-sum` means that the
# server sees sums only, and that every hospital adds its share of the noise. The seed makes it a simulation that
# comes out the same each time.

# %%
Path("schema.toml").write_text("""
[columns.age]
kind = "numeric"
low = 0
high = 110
[columns.pressure]
kind = "numeric"
low = 60
high = 220
[columns.smoker]
kind = "binary"
categories = ["no", "yes"]
[columns.stroke]
kind = "label"
classes = ["no", "yes"]
""")
Path("study.toml").write_text("""
title = "Stroke, three hospitals"
[data]
schema = "schema.toml"
test = "public.csv"
[model]
loss = "logistic"
regularizer = { kind = "l2", strength = 1e-3 }
intercept = true
[privacy]
epsilon = 2.0
delta = 1e-5
observer = "server"
seed = 0
[setting]
kind = "federated"
trust = "secure-sum"
[setting.parties]
north = 800
south = 800
east = 800
""")

from consenso import Study

study = Study.load("study.toml")
study.plan()

# %% [markdown]
# Certificates for everybody, from an authority of our own:

# %%
import socket
import subprocess
import sys


def consenso(*words):
    """Start a command of the program."""
    return subprocess.Popen([sys.executable, "-m", "consenso", *words], stdout=subprocess.PIPE, text=True)


def finish(*commands):
    """Wait for commands, and see that each ended well."""
    return [(command.communicate()[0], command.returncode) for command in commands]


made = finish(consenso("certs", "init", "authority"))
made += finish(
    consenso("certs", "issue", "server", "--ca", "authority", "--out", "certs/server", "--host", "127.0.0.1"),
    *(consenso("certs", "issue", name, "--ca", "authority", "--out", f"certs/{name}") for name in study.parties),
)
assert {code for _, code in made} == {0}

# %% [markdown]
# The server has no data. Each hospital starts one process beside its own table. The order does not matter.

# %%
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    address = f"127.0.0.1:{free.getsockname()[1]}"
server = consenso("serve", "study.toml", "--listen", address, "--certs", "certs/server", "--out", "run", "--json")
hospitals = [
    consenso(
        "join", "study.toml", "--server", address, "--party", name, "--data", f"{name}.csv", "--certs", f"certs/{name}"
    )
    for name in study.parties
]
ended = finish(server, *hospitals)
assert {code for _, code in ended} == {0}

# %% [markdown]
# Everybody has the same model and the same card now, and every number of the card follows from its parameters:

# %%
from consenso.models import load_model

models = {place: load_model(place).coefficients for place in ("run", "north.run", "east.run")}
assert all(np.array_equal(model, models["run"]) for model in models.values())
print(finish(consenso("verify", "run"))[0][0])

# %% [markdown]
# How good it is on records that nobody has to protect, and who learns how much:

# %%
import json

from consenso import Card

metrics = json.loads(Path("run/metrics.json").read_text())
print(f"accuracy {metrics['accuracy']:.3f} on {metrics['records']} public records")
Card.load("run")
