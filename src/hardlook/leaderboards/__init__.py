"""Many runs of one benchmark in one table, beside what was published: gathered, made comparable, ranked, shown."""
