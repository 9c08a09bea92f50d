"""A backend "cpu" of triton that compiles nothing: vLLM's model runner V2 asks whether there is one.

With TRITON_INTERPRET=1 triton's own interpreter runs the kernels, and no backend is called. The folder is on
$PYTHONPATH only while V2 runs on a CPU: the runner V1 takes its own kernels where triton has no such backend.
"""
