"""Parts of networks as kernels for GPUs, in Triton's language, and the same in torch for everywhere else."""
