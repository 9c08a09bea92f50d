"""Jobs on a Ray cluster that is running; the bundles go from its workers straight to the store.

Leaves out   the jobs (job.py). Starting a cluster.
Invariants   as in pool.py, with Ray's own retries for workers that die. The nodes have toolc installed and reach the
             store under the same URL; specs are sent to them, tokenizers are in the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from ..errors import SetupError
from .job import FAILED, Job, Outcome, run_job

WINDOW = 2  # jobs handed out for each CPU of the cluster


def run_on_ray(jobs: Iterable[Job], address: str) -> Iterator[Outcome]:
    """The outcomes of jobs, done by the cluster at this address (``auto``, ``host:port``, ``ray://host:port``)."""
    try:
        import ray
    except ImportError:
        raise SetupError("a Ray cluster needs the package ray", hint="pip install 'toolc[ray]'") from None
    try:
        ray.init(address=address, log_to_driver=False, ignore_reinit_error=True)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise SetupError(
            "cannot reach the Ray cluster",
            place=address,
            found=str(error)[:300],
            hint="start one with `ray start --head`",
        ) from error
    work = ray.remote(num_cpus=1, max_retries=2)(run_job)
    running: dict[Any, Job] = {}
    todo = iter(jobs)
    try:
        while True:
            width = max(1, int(ray.cluster_resources().get("CPU", 1))) * WINDOW
            for job in islice(todo, max(0, width - len(running))):
                running[work.remote(job)] = job
            if not running:
                return
            done, _ = ray.wait(list(running), num_returns=1)
            for reference in done:
                job = running.pop(reference)
                try:
                    outcome = ray.get(reference)
                except ray.exceptions.RayError as error:
                    about = {"error": type(error).__name__, "message": str(error)[:2000]}
                    outcome = Outcome(job.name, job.tokenizer, FAILED, None, 0, 0.0, about)
                yield outcome
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
        ray.shutdown()
