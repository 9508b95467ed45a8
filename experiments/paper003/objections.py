"""Objections to paper 003, each with the reading that is kindest to it."""

from __future__ import annotations

from experiments.definition import Case
from experiments.outcome import Objection
from experiments.results import Results
from experiments.writing import shown


def sensitivity(results: Results) -> Objection:
    """The scale of the noise."""
    ((_, toy), *_) = results.rows("toy")
    ((_, leak), *_) = results.rows("leak", data="MNIST")
    return Objection(
        claim='"our algorithm provides eps_bar-DP for every iteration", with Laplace noise of scale (largest |x|_1 '
        "|h - y|_1 of the agent's records)/(I eps_bar)",
        place="abstract; (11b) and (20)",
        argument=(
            "The scale is computed from the records, so it is not the same for neighbouring data sets.",
            "Ten records x = 0.1, or one of them 1: the scales are 0.01 and 0.1 at eps_bar = 1.",
            "Noise beyond 0.1 has probability exp(-10) in one world and exp(-1) in the other: 9 nats, not 1.",
            "If all records are blank there is no noise at all. In J K dimensions a small change of scale is plain "
            "to see.",
        ),
        shown=f"the example: {shown(toy['nats'])} nats where {shown(toy['claimed'])} is claimed; MNIST, an agent's "
        f"largest record left out: the scale of the agent that it touches most changes by "
        f"{leak['largest change'] - 1:.1%}, worth {shown(leak['nats'])} nats, that of the median agent by "
        f"{leak['median change'] - 1:.1%}, worth {shown(leak['median nats'])}",
        stands=toy["nats"] > toy["claimed"],
        reading="(20) is meant as a bound over all data sets (features within [0, 1]: 2 J/I for a record that is "
        "added, 4 J/I "
        f"for one that is replaced). Then every iteration is private as claimed, with "
        f"{shown(toy['global over measured'])} times the noise in the example, which is then worth "
        f"{shown(toy['nats, global scale'])} nats. The authors' repository of January 2023 has such a bound for MNIST, "
        "sqrt(J K) in the 2-norm, with Gaussian noise.",
        survives=toy["nats, global scale"] > toy["claimed"],
        correction="Clip |x|_1 to a public B_1: sensitivity 2 B_1/I (add-remove), 4 B_1/I (replace-one), and compose "
        "the "
        "iterations; or Gaussian noise on the 2-norm.",
    )


def output_code(results: Results) -> Objection:
    """The baseline."""
    found = {asked["epsilon"]: values["used"] / values["asked"] for asked, values in results.rows("output")}
    smallest, largest = min(found), max(found)
    return Objection(
        claim="OutP has the noise of its own theorem (Gaussian mechanism at eps_bar and delta)",
        place="public code of 2021, Functions.py, generate_matrix_normal_noise",
        argument=(
            "normal(scale = sigma * sigma) draws with the square of the deviation.",
            "c_1 = num_data stands where the bound of a record's gradient belongs.",
            "The two errors partly cancel, differently at every epsilon.",
            "The authors have mended both since: sigma and sqrt(J K) in their repository of January 2023.",
        ),
        shown="noise of the first iteration on MNIST over what the theorem asks for: "
        + ", ".join(f"{shown(ratio)} at {epsilon:g}" for epsilon, ratio in found.items()),
        stands=any(abs(ratio - 1) > 0.1 for ratio in found.values()),
        reading="More noise than needed is conservative for privacy, so that only the comparison suffers, to the "
        "disadvantage of the baseline. (All this is about the public code: of a comparison that other code made it "
        "would say nothing.)",
        survives=found[smallest] > 1.1 or found[largest] < 0.9,
        correction="Standard deviation 2 c/(I (rho + 1/eta)) sqrt(2 ln(1.25/delta))/eps, c = sqrt(2) times the "
        "longest row.",
    )


def trust_region(results: Results) -> Objection:
    """The radius."""
    found = {asked["iteration"]: values for asked, values in results.rows("radius")}
    last, radii = max(found), [values["code"] for values in found.values()]
    return Objection(
        claim="Trust uses the radius 1/t^2",
        place="Algorithm 2 and the experiments; public code, Models.py",
        argument=(
            "The code has a / (iteration+1)*(iteration+1), which Python evaluates from the left: it is a, for every t.",
            "With the radius of the text the iterate cannot go further than the sum of 1/t^2, 1.64 in a coordinate.",
            "If this code made the errors that are reported, they are those of a constant radius.",
        ),
        shown=f"at t = {last:,} the text has {shown(found[last]['text'])}, the code {shown(found[last]['code'])}",
        stands=abs(found[last]["code"] / found[last]["text"] - 1) > 1e-6,
        reading="The paper describes what its code does, a radius that is constant: then its reported errors are "
        "those of "
        "Algorithm 2 with delta^t = 1.",
        survives=max(radii) - min(radii) > 1e-9,
        correction="State the radius that was used; no privacy depends on it.",
    )


CASES = (
    Case(name="sensitivity", groups=("toy", "leak"), object_to=sensitivity),
    Case(name="outp", groups=("output",), object_to=output_code),
    Case(name="trust-region", groups=("radius",), object_to=trust_region),
)
