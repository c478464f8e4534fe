"""A user's mistakes: mypy finds the one on each marked line, with this error code, and nothing else."""

import amble

data = amble.load("diabetes")
problem = amble.split(data, agents=10)
run = amble.simulate(amble.Relay(), problem, hops=20)

amble.Relais()  # expect: attr-defined
amble.Relay(token=2)  # expect: call-arg
amble.IBCD(tau="1")  # expect: arg-type
amble.Timing(low="1 s")  # expect: call-arg
amble.load(3)  # expect: arg-type
amble.split(data, agents="ten")  # expect: arg-type
amble.simulate(amble.Relay(), data, hops=20)  # expect: arg-type
amble.simulate(amble.Relay(), problem, hops="20")  # expect: arg-type
amble.simulate(amble.Relay(), problem, hop=20)  # expect: call-arg
amble.simulate("Relay", problem)  # expect: arg-type
amble.simulate(amble.Relay, problem)  # expect: arg-type
amble.resume(run, hops=40)  # expect: call-arg
amble.networks.ring("5")  # expect: arg-type
assert run.modle  # expect: attr-defined
run.time_to(0.5)  # expect: call-arg
run.seed = 3  # expect: misc
