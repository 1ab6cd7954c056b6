"""Wallets to try selections with."""

import leasehold

BRIEF = {"ttl": 5, "settle": 5, "max_age": 1, "currency": "EUR"}
PATIENT = {"timeout": 50}
AT_ONCE = {"timeout": 0}


def opened(place, face=leasehold):
    """Replies take less than selections live, for these to be renewed in time."""
    return place.open(face, response_timeout=3)


def source_of(tokens, wallet="w"):
    source = leasehold.TokensInMemory()
    for token, amount in tokens.items():
        source.add(wallet, "EUR", {"id": token, "amount": amount})
    return source


def two(place, tokens, face=leasehold, **options):
    """The same wallet as two processes have it, and its source."""
    source = source_of(tokens)
    here, there = (opened(place, face).tokens("w", source=source, **{**BRIEF, **options}) for _ in range(2))
    return here, there, source


def ids(selection):
    return sorted(token["id"] for token in selection.tokens)


async def selected(wallet, target):
    return await wallet.select(target, **PATIENT)
