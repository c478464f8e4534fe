"""Rounds of DISROPT's distributed gradient method: one process per agent under MPI, so seconds are by the clock."""

import time

import numpy as np
from disropt.agents import Agent
from disropt.algorithms import SubgradientMethod
from disropt.functions import QuadraticForm, Variable
from disropt.problems import Problem
from mpi4py import MPI
from serve import job, serve

arrays, _, path = job()
everyone = MPI.COMM_WORLD
me = everyone.Get_rank()
X, y, W = arrays["X"][me], arrays["y"][me], arrays["W"]
p = X.shape[1]
near = [j for j in range(len(W)) if j != me and W[me, j] > 0]
agent = Agent(in_neighbors=near, out_neighbors=near, in_weights={j: float(W[me, j]) for j in near})
# w'Pw + q'w is half the mean square of the residuals
objective = QuadraticForm(Variable(p), P=X.T @ X / (2 * len(y)), q=-(X.T @ y / len(y))[:, None])
agent.set_problem(Problem(objective))
algorithm = SubgradientMethod(agent=agent, initial_condition=np.zeros((p, 1)))


def advance(rounds):
    everyone.bcast(rounds, root=0)
    algorithm.run(iterations=rounds, stepsize=float(arrays["alpha"]))
    everyone.Barrier()


def models():
    gathered = everyone.gather(algorithm.x[:, 0], root=0)
    return np.stack(gathered) if me == 0 else None


if me == 0:
    serve(advance, models, path, time.perf_counter)
    everyone.bcast(0, root=0)
else:
    while rounds := everyone.bcast(None, root=0):
        algorithm.run(iterations=rounds, stepsize=float(arrays["alpha"]))
        everyone.Barrier()
        models()
