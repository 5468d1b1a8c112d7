"""Contractions of many fields: tenferro beside NumPy, PyTorch and JAX, along the same paths.

    python3 dev run benchmarks/einsum_families.py [--quick] [--dtype D] [--rounds N] [--threads N] [--only TEXT]
        [--skip TEXT ...] [--without X ...] [--busy] [--family F ...] [--seed N]

The families of the public einsum benchmark (benchmark.einsum.org) that are generated: circuits and Fourier transforms
with hyper-edges, model counts, graphical models, networks of projected entangled pairs, trees of language models,
random networks with hyper-edges, traces and diagonals. The pairs of the TCCG benchmark (P. Springer, P. Bientinesi:
Design of a high-performance GEMM-like tensor-tensor multiplication, ACM TOMS 44, 2018), and what quantum chemistry,
matrix product states, decompositions of tensors and learning contract. Sizes are those of a millisecond to a second;
``--seed`` draws the random ones anew.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from contestants import Table, parser, prepare
from einsum_networks import instance

Row = tuple[str, list[str], str, dict[str, int]]
"""Name, labels of the operands and of the result, extents."""

TCCG = """
abc-bda-dc abc-dca-bd abcd-dbea-ec abcd-deca-be abcd-ebad-ce abcde-efbad-cf abcde-ecbfa-fd abcde-efcad-bf abcd-ea-ebcd
abcd-eb-aecd abcd-ec-abed ab-ac-cb ab-acd-dbc ab-cad-dcb abc-acd-db abc-ad-bdc abc-adc-bd abc-adc-db abc-adec-ebd
abcd-aebf-dfce abcd-aebf-fdec abcd-aecf-bfde abcd-aecf-fbed abcd-aedf-bfce abcd-aedf-fbec abcd-aefb-fdce abcd-aefc-fbed
abcd-eafb-fdec abcd-eafc-bfde abcd-eafd-fbec abcdef-dega-gfbc abcdef-degb-gfac abcdef-degc-gfab abcdef-dfga-gebc
abcdef-dfgb-geac abcdef-dfgc-geab abcdef-efga-gdbc abcdef-efgb-gdac abcdef-efgc-gdab abcdef-gdab-efgc abcdef-gdac-efgb
abcdef-gdbc-efga abcdef-geab-dfgc abcdef-geac-dfgb abcdef-gebc-dfga abcdef-gfab-degc abcdef-gfac-degb abcdef-gfbc-dega
"""

NAMED = """
ladder of pairs            | ijef,efab->ijab                   | ij=12 abef=32
ring of pairs              | ikac,kcjb->ijab                   | ijk=12 abc=32
ladder of holes            | klij,klab->ijab                   | ijkl=14 ab=32
triples                    | eiab,jkec->abcijk                 | ijk=5 abce=18
four-index transformation  | pqrs,pi,qa,rj,sb->iajb            | pqrs=36 ij=8 ab=28
density fitting            | Pia,Pjb->iajb                     | P=200 ij=8 ab=40
half transformation        | Ppq,pi,qa->iPa                    | P=150 pq=60 i=8 a=50
exchange of densities      | Ppq,pi,Prs,ri->qs                 | P=60 pqrs=40 i=10
norm of states             | ab,aic,bid->cd                    | abcd=120 i=2
left environment           | awc,asb,wxst,ctd->bxd             | abcd=96 wx=6 st=2
two sites                  | awc,csto,wxsp,xytq,byo->apqb      | abco=64 wxy=6 stpq=2
gate on two sites          | aib,bjc,ijkl->akcl                | abc=128 ijkl=2
corner transfer            | ab,bcp,adq,pqrs->cdrs             | abcd=60 pqrs=9
coarse graining            | abx,bcy,cdz,daw->xyzw             | abcd=20 xyzw=20
row of entangled pairs     | aiIb,ijklp,IJKLp->ajJbkKlL        | ab=20 ijklIJKL=4 p=2
Tucker                     | ijk,ai,bj,ck->abc                 | ijk=64 abc=48
Tucker core of four        | abcd,ai,bj,ck,dl->ijkl            | abcd=12 ijkl=24
canonical, whole           | ir,jr,kr->ijk                     | ijk=110 r=24
matricised with Khatri-Rao | ijk,jr,kr->ir                     | ijk=120 r=16
matricised, last           | ijk,ir,jr->kr                     | ijk=120 r=16
matricised, of four        | ijkl,ir,jr,lr->kr                 | ijkl=36 r=16
Khatri-Rao                 | ir,jr->ijr                        | ij=300 r=16
Gram of factors            | ir,is,jr,js,kr,ks->rs             | ijk=600 r=60 s=60
train, whole               | ia,ajb,bkc,cl->ijkl               | ijkl=40 abc=12
train applied              | abcd,iaA,AjbB,BkcC,Cld->ijkl      | abcdijkl=16 ABC=8
scores of attention        | bhqd,bhkd->bhqk                   | b=4 h=8 qk=128 d=64
values of attention        | bhqk,bhkd->bhqd                   | b=4 h=8 qk=128 d=64
scores, heads last         | bqhd,bkhd->bhqk                   | b=4 h=8 qk=128 d=64
values, heads last         | bhqk,bkhd->bqhd                   | b=4 h=8 qk=128 d=64
linear attention           | bhkd,bhke,bhqd->bhqe              | b=4 h=8 qk=256 de=32
projection of heads        | btm,mhd->bhtd                     | b=4 t=128 m=256 h=8 d=32
projection back            | bhtd,hdm->btm                     | b=4 t=128 m=256 h=8 d=32
bilinear layer             | bi,oij,bj->bo                     | b=64 ijo=64
experts                    | gsem,emh->gseh                    | g=2 s=64 e=8 m=64 h=128
low rank                   | bti,ir,ro->bto                    | b=4 t=128 io=256 r=8
convolution as a network   | bcxy,xiu,yjv,ocuv->boij           | b=4 c=16 xy=30 ij=28 uv=3 o=16
patches                    | bcxuyv,ocuv->boxy                 | b=8 c=3 xy=16 uv=8 o=64
distances of two sets      | id,id->i                          | i=100000 d=16
quadratic forms            | bi,ij,bj->b                       | b=4000 ij=64
batch of outer products    | bi,bj->bij                        | b=4000 ij=24
interleaved outer products | bij,bkl->bikjl                    | b=32 ijkl=8
covariance                 | nti,ntj->nij                      | n=16 t=400 ij=40
trace of a product         | ij,jk,kl,li->                     | ijkl=200
diagonal of a product      | ij,jk,ki->i                       | ijk=200
product of traces          | ii,jj,kk->                        | ijk=400
partial trace              | abcbde,fd->acfe                   | abcdef=14
partial transpose          | abcd,cbef->adef                   | abcdef=20
spins of a star            | ax,bx,cx,dx,ex->abcde             | abcde=14 x=20
marginals                  | abc,bcd,cde,def->ad               | abcdef=18
"""


def pairs(seed: int) -> Iterator[Row]:
    """The 48 pairs of TCCG, smaller than there; equations name the result first."""
    for number, spelled in enumerate(TCCG.split()):
        result, left, right = spelled.split("-")
        count = len({*left, *right})
        middle, end = {3: (480, 480), 4: (112, 100), 5: (36, 40), 6: (22, 20), 7: (14, 12)}[count]
        sizes = {x: middle if k % 2 else end for k, x in enumerate(sorted({*left, *right}))}
        yield f"tccg {number} {spelled}", [left, right], result, sizes


def named(seed: int) -> Iterator[Row]:
    """What is contracted every day, by field."""
    for line in NAMED.strip().splitlines():
        name, equation, given = line.split("|")
        terms, _, result = equation.strip().partition("->")
        sizes = {x: int(n) for labels, n in (group.split("=") for group in given.split()) for x in labels}
        yield name.strip(), terms.split(","), result, sizes


def symbols() -> Iterator[str]:
    """One label after the other."""
    import opt_einsum

    return map(opt_einsum.get_symbol, itertools.count())


def circuits(seed: int) -> Iterator[Row]:
    """Amplitudes of circuits on a square of qubits: gates on one, then on neighbours, cycle after cycle."""
    for side, cycles in ((4, 8), (5, 8), (6, 6)):
        labels, terms = symbols(), []
        now = {at: next(labels) for at in itertools.product(range(side), repeat=2)}
        terms += now.values()
        for cycle in range(cycles):
            for at, old in now.items():
                now[at] = next(labels)
                terms.append(now[at] + old)
            across, first = divmod(cycle % 4, 2)
            for i, j in now:
                other = (i + across, j + 1 - across)
                if (i, j)[1 - across] % 2 == first and other in now:
                    old = now[i, j] + now[other]
                    now[i, j], now[other] = next(labels), next(labels)
                    terms.append(now[i, j] + now[other] + old)
        terms += now.values()
        yield f"circuit {side}x{side}, {cycles} cycles", terms, "", dict.fromkeys("".join(terms), 2)


def transforms(seed: int) -> Iterator[Row]:
    """Fourier transforms of qubits: controlled phases are matrices between labels that go on, of many tensors each."""
    for qubits in (14, 20):
        labels, terms, output = symbols(), [], ""
        for k in range(qubits):
            old, new = next(labels), next(labels)
            terms += [old, new + old]
            output += new
            terms += [output[j] + new for j in range(k)]
        yield f"Fourier transform of {qubits}", terms, output, dict.fromkeys("".join(terms), 2)
    labels, terms, output = symbols(), [], ""
    for _ in range(20):  # a state without entanglement: nothing but its result joins the parts
        chain = [next(labels) for _ in range(5)]
        terms += [chain[0], *map("".join, itertools.pairwise(chain))]
        output += chain[-1]
    yield "qubits side by side", terms, output, dict.fromkeys("".join(terms), 2)


def counts(seed: int) -> Iterator[Row]:
    """Model counts: a tensor for each clause, a vector for each weight, a label for each variable."""
    for variables, clauses, width, weighted in ((100, 300, 10, False), (200, 520, 8, True), (400, 1000, 6, False)):
        rng, labels = random.Random(seed + variables), symbols()
        names = [next(labels) for _ in range(variables)]
        terms = list(names) if weighted else []
        for _ in range(clauses):
            at = rng.randrange(variables)
            near = [names[(at + k) % variables] for k in rng.sample(range(width + 1), 3)]
            terms.append("".join(near[: rng.choice((2, 3, 3))]))
        terms += [rng.choice(terms)[0] + names[k] for k in range(0, variables, 50)]
        yield f"model count of {variables}{', weighted' * weighted}", terms, "", dict.fromkeys("".join(terms), 2)


def graphical(seed: int) -> Iterator[Row]:
    """Graphical models: factors of neighbours on a strip, of pedigrees, and of few variables of large extents."""
    rng, labels = random.Random(seed), symbols()
    at = {place: next(labels) for place in itertools.product(range(30), range(5))}
    terms = [at[i, j] + at[other] for i, j in at for other in ((i + 1, j), (i, j + 1)) if other in at]
    yield "strip of 30x5, 5 values", [*at.values(), *terms], "", dict.fromkeys(at.values(), 5)
    labels = symbols()
    people = [next(labels) for _ in range(120)]
    terms = people[:12]
    terms += [child + "".join(rng.sample(people[k : k + 12], 2)) for k, child in enumerate(people[12:])]
    yield "pedigree of 120", terms, "", {x: rng.randint(2, 4) for x in people}
    labels = symbols()
    parts = [next(labels) for _ in range(14)]
    terms = [x + y for k, x in enumerate(parts) for y in parts[k + 1 : k + 4]]
    yield "side chains of 14", [*parts, *terms], "", {x: rng.randint(3, 81) for x in parts}


def lattices(seed: int) -> Iterator[Row]:
    """Projected entangled pairs, closed and open, in one layer and in two, and a fork of trains."""
    for rows, columns, bond, open_, layers in ((6, 6, 4, 0, 1), (3, 5, 3, 0, 2), (4, 5, 2, 12, 1), (3, 4, 4, 4, 1)):
        labels = symbols()
        sites = list(itertools.product(range(rows), range(columns)))
        outer = {at: next(labels) for at in sites}
        terms, sizes = [], dict.fromkeys(outer.values(), 2)
        for _ in range(layers):
            bonds = {frozenset(pair): next(labels) for pair in _neighbours(sites)}
            sizes |= dict.fromkeys(bonds.values(), bond)
            for number, at in enumerate(sites):
                own = outer[at] if layers > 1 or number < open_ else ""
                terms.append("".join(x for pair, x in bonds.items() if at in pair) + own)
        output = "".join(outer[at] for at in sites[:open_]) if layers == 1 else ""
        shown = f"{rows}x{columns}, bond {bond}"
        yield f"entangled pairs {shown}, {layers} layer(s), {open_} open", terms, output, sizes
    labels, terms, output = symbols(), [], ""
    spine = next(labels)
    for arm in range(4):
        following, down = next(labels), next(labels)
        terms.append(spine * (arm > 0) + following * (arm < 3) + down)
        for k in range(5):
            below, site = next(labels), next(labels)
            terms.append(down + site + below * (k < 4))
            output += site
            down = below
        spine = following
    large = dict.fromkeys("".join(terms), 8) | dict.fromkeys(output, 2)
    yield "fork of trains, open", terms, output, large


def _neighbours(sites: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Sites side by side."""
    for i, j in sites:
        yield from (((i, j), other) for other in ((i, j + 1), (i + 1, j)) if other in sites)


def language(seed: int) -> Iterator[Row]:
    """Likelihoods of a batch of sentences: a tree of tensors over words, a label of the batch on every word, twice."""
    for depth, extent, batch in ((3, 12, 1100), (4, 4, 1900), (4, 8, 300)):
        labels, terms = symbols(), []
        word = next(labels)
        sizes = {word: batch}
        for _ in range(2):
            front = [""]
            for level in range(depth + 1):
                below = []
                for above in front:
                    made = [next(labels) for _ in range(2)]
                    terms.append(above + (word if level == depth else "".join(made)))
                    below += made
                front = below
            sizes |= dict.fromkeys({*"".join(terms)} - {*sizes}, extent)
        yield f"sentences {depth}, {extent}d", terms, word, sizes


def mixed(seed: int) -> Iterator[Row]:
    """Random networks with hyper-edges, traces and diagonals, sums of one operand, and labels that all have."""
    for count, edges, hyper, shared in ((12, 16, 3, 1), (30, 40, 8, 0), (100, 104, 10, 0), (300, 303, 20, 1)):
        rng, labels = random.Random(seed + count), symbols()
        terms, sizes = [""] * count, {}
        for k in range(edges + hyper):
            x = next(labels)
            sizes[x] = rng.randint(2, 6 if count < 100 else 4)
            ends = [k, rng.randrange(max(0, k - 4), k + 1)] if k < count else []
            ends += [rng.randrange(count) for _ in range(2 - len(ends))]
            near = rng.randrange(count)
            ends += [(near + rng.randrange(4)) % count for _ in range(rng.randint(1, 3))] * (k >= edges)
            for n in ends:
                terms[n] += x  # twice on one tensor where both ends meet: a trace, or a diagonal of a hyper-edge
        for n in rng.sample(range(count), 4):
            x = next(labels)
            sizes[x] = rng.randint(2, 5)
            terms[n] += x  # on one operand alone, left or summed
        every = "".join([next(labels) for _ in range(shared)])
        sizes |= dict.fromkeys(every, 3)
        terms = ["".join(rng.sample([*t, *every], len(t) + len(every))) for t in terms]
        output = every + "".join(rng.sample(sorted({*"".join(terms)} - {*every}), 3))
        yield f"mixed network of {count}", terms, output, sizes


FAMILIES = {
    "pairs": pairs, "named": named, "circuits": circuits, "transforms": transforms,
    "counts": counts, "graphical": graphical, "lattices": lattices, "language": language, "mixed": mixed,
}  # fmt: skip

if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--family", nargs="*", default=[*FAMILIES], choices=[*FAMILIES])
    chosen = options.parse_args()
    prepare(chosen)
    rows = (row for family in chosen.family for row in FAMILIES[family](chosen.seed) if chosen.only in row[0])
    Table(chosen).run(one for row in rows if (one := instance(*row)) is not None)
