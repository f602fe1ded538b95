"""Does every fit end, feasible and with a true status, whatever the problem?

`problems` draws hostile problems, `worker` fits them in a process of its own, `watch`
ends that process when its time is over, `verdict` judges what came back, and
`__main__` counts.
"""
