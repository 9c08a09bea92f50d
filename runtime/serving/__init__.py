"""Constraints for ordinary requests of a serving engine: which bundle and entry, compiled if need be, before the engine
sees the request.

    settings.py    what the operator says
    rewrite.py     body of a request → the body that the engine gets, and back for its answer
    outcomes.py    content → the bundle in the store: asks the worker once, remembers
    worker.py      the process that compiles
    reasoning.py   where the prompt leaves the model: before, inside or after its reasoning
    gate.py        all of that for one request
    middleware.py  the gate in front of an ASGI application

Leaves out   the engines: see adapters/vllm_requests.py. What a body means: see requests.py.
Invariants   the compiler is loaded by the worker only; the event loop neither compiles nor opens files of bundles.
"""
