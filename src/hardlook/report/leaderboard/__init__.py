"""Many runs of one benchmark in one table, beside the published results."""
