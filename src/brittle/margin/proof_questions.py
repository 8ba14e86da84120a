"""What we ask beyond VYS of its proof and of test data: M18 and M19. They are answered, not judged."""

from __future__ import annotations

from brittle.margin.theory_claims import sizes
from brittle.verdicts import VYS, Finding, Tables, not_run, seeds, span

NEAR = 0.1  # the KKT residual up to which a fit of λ and σ' is taken to be that of a KKT point
HOLDS = 1.02  # lhs/rhs up to which a line counts as holding: these networks are KKT points to a few percent


@VYS.question(
    "M18",
    source="App. C",
    says="the proof, line by line: how tight is each inequality, and where is the constant of √(d/m) lost?",
    paper="‖z‖ ≤ 18√2·√(d/(c²m)), through Lemmas C.1–C.9",
    premise="the theorem applies, and the network is near a KKT point: residual ≤ 0.1 with fitted λ and σ'",
    rule="both sides of every inequality on every such network; and the factors whose product is the bound over the "
    "size that flips all samples",
    reads="plots/proof.csv",
)
def m18(tables: Tables) -> Finding:
    every = tables["plots/proof.csv"]
    t = every[every["kkt"] <= NEAR]
    if t.empty:
        return not_run("a network with KKT residual ≤ 0.1")
    network = ["world", "d", "m", "width", "init_scale", "seed"]
    lines, losses = t[t["part"] == "line"], t[t["part"] == "loss"]
    whole = losses.groupby(network)["rhs"].prod()
    holds = lines["tightness"] <= HOLDS
    factors = losses.groupby("lemma", sort=False)["rhs"].median().sort_values(ascending=False)
    words = ", ".join(f"{lemma} {factor:.3g} ×" for lemma, factor in factors.items())
    measured = f"the bound is {whole.median():.3g} × the size that flips all: {words}; "
    measured += f"{holds.sum()} of {len(lines)} lines hold within 2 %"
    if not holds.all():
        worst = lines.loc[lines["tightness"].idxmax()]
        broken = ", ".join(dict.fromkeys(lines.loc[~holds, "lemma"]))
        measured += f" (not: {broken}; lhs/rhs {worst['tightness']:.3g} at worst)"
    typical = lines.groupby("lemma", sort=False)["tightness"].median()
    measured += f"; loosest {', '.join(f'{lemma} {value:.2g}' for lemma, value in typical.nsmallest(3).items())}"
    count, others = t[network].drop_duplicates(), every[every["kkt"] > NEAR][network].drop_duplicates()
    scale = (
        f"{len(count)} networks of residual ≤ {t['kkt'].max():.2g}, d {span(t['d'])}, m {span(t['m'])}, {seeds(t)}; "
    )
    scale += f"{len(others)} others are farther from a KKT point"
    return Finding(float(whole.median()), measured, scale)


@VYS.question(
    "M19",
    source="§7 (open)",
    says="is a test sample as brittle as a training sample?",
    paper='open question: "we show non-robustness w.r.t. the training dataset rather than on test data"',
    rule="clusters with orthogonal centres: accuracy on fresh points, the share of them that z of the training data "
    "flips at its own size c and at twice that, and their attacked radius relative to their norm, beside the training "
    "samples'",
    reads="plots/fresh.csv",
)
def m19(tables: Tables) -> Finding:
    t = tables["plots/fresh.csv"]
    missing = [kind for kind in ("margin", "others", "fresh") if kind not in set(t["kind"])]
    if missing:
        return not_run(*(f"{kind} points" for kind in missing))
    columns = ["accuracy", "flipped", "flipped_twice", "c", "radius_over_norm"]
    mean = t.groupby("kind")[columns].mean()
    fresh, others, margin = (mean.loc[kind] for kind in ("fresh", "others", "margin"))
    ratio = float(fresh["radius_over_norm"] / others["radius_over_norm"])
    words = {
        name: f"{100 * row['flipped']:.3g} % at c, {100 * row['flipped_twice']:.3g} % at 2c, all at "
        f"{row['c'] / margin['c']:.2f} c, attacked radius/norm {row['radius_over_norm']:.3f}"
        for name, row in (("fresh", fresh), ("training", others))
    }
    measured = f"test accuracy {fresh['accuracy']:.4g}; z, which flips the margin set at c, flips of fresh points "
    measured += f"{words['fresh']}; of training samples off the margin {words['training']}"
    points = t.loc[t["kind"] == "fresh", "points"].sum()
    return Finding(ratio, measured, f"{points:g} fresh points, {sizes(t)}")
