"""llama.cpp's own work, done again without it: the graph of a launch, its split over devices, and the allocation of it.

Where a model's graph is known here, this gives the compute buffers that llama-fit-params reports. It takes some
milliseconds and may go down where a context grows, so the search keeps to the formulas of `planning/compute*`.
"""
