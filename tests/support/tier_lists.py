"""The pair lists of a folder, for tests that look at what a build wrote."""

from hardlook.data.toss_pairs import list_pair_files, read_pairs


def tier_lists(folder, *tiers):
    """The lists of these tiers, all folds."""
    return [read_pairs(file) for file in list_pair_files(folder) if file.tier in tiers]
