"""Runs that can be stopped, resumed, spread over processes and trusted."""
