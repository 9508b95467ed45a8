"""Objections to paper 000, each with the reading that is kindest to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.definition import Case
from experiments.outcome import Objection
from experiments.paper000.published import DELTA
from experiments.results import Results
from experiments.writing import shown

NUMERICAL = 1 + 1e-9


def _first(results: Results, group: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    (asked, values), *_ = results.rows(group)
    return asked, values


def theorem_2(results: Results) -> Objection:
    """The division by n."""
    asked, values = _first(results, "theorem centralized")
    return Objection(
        claim="Algorithm 2 with prox_{gamma f_i}, only z_K released: (alpha, 8 alpha K L^2 gamma^2/(n^2 sigma^2))-RDP",
        place="Theorem 2, proof in Theorem 8, equation (28)",
        argument=(
            "Replacing f_i moves x_i by up to 2 gamma L and so u_i by 4 lambda gamma L; (28) divides this by n, "
            "as a prox of the step gamma/n would.",
            "Take f_i(x) = <g_i, x> and r = 0: the mean of the u is a Gaussian random walk.",
            "One update moves it by 4 lambda gamma L/n, with noise of deviation lambda sigma/sqrt(n).",
            "z_K is made from u_{K-1}, so it holds K - 1 updates: their cost is 8 (K-1) L^2 gamma^2/(n sigma^2), n "
            "times more.",
        ),
        shown=f"n = {asked['parties']}, K = {asked['rounds']}, linear losses: printed {shown(values['printed'])}, "
        f"exact "
        f"{shown(values['exact'])} (zCDP), {shown(values['exact'] / values['printed'])} times as much",
        stands=values["exact"] > values["printed"] * NUMERICAL,
        reading="The prox has the step gamma/n (with z = prox_{(gamma/n) r}), as in parts of the paper: then u_i "
        f"moves by 4 lambda gamma L/n, the exact value is {shown(values['exact, step over n'])}, and the theorem is "
        "true, even for whoever sees all of u.",
        survives=values["exact, step over n"] > values["printed"] * NUMERICAL,
        correction="With prox_{gamma f_i} and full participation, whoever sees every mean: 32 n alpha K gamma^2 "
        "L^2/((n+1)^2 "
        f"sigma^2) at lambda = 1/2 (Theorem F of docs/privacy.md), here {shown(values['ours'])}; or noise once, on "
        f"the sum.",
    )


def theorem_3(results: Results) -> Objection:
    """Local noise in a sum."""
    asked, values = _first(results, "theorem federated")
    return Objection(
        claim="Algorithm 3, only sums over the m sampled users seen: (alpha, 16 alpha K L^2 gamma^2/(n^2 sigma^2))-RDP",
        place="Theorem 3, second part (Theorem 10); Remark 4 for secure aggregation",
        argument=(
            "Each of m users adds noise of variance lambda^2 sigma^2: the sum has m times that, not m^2 times.",
            "A participant therefore costs 8 alpha L^2 gamma^2/(m sigma^2) a round; sampling makes it (m/n)^2 of "
            "that at best.",
            "The claim is smaller than this by m/2. Lemma C.1 is for Poisson samples and add-remove, the algorithm's "
            "are of",
            "fixed size and the claim is replace-one; and states keep noise, so that later sums tell of earlier "
            "rounds.",
        ),
        shown=f"one round, n = {asked['parties']}, m = {asked['sampled']}, sigma = {shown(asked['std'])}: printed "
        f"{shown(values['printed'])}, exact {shown(values['exact'])} (order 2), "
        f"{shown(values['exact'] / values['printed'])} times as much",
        stands=values["exact"] > values["printed"] * NUMERICAL,
        reading="With the step gamma/n in the prox the bound is true: seeing every update costs at most "
        f"{shown(values['local, step over n'])} then. But the first part of the same theorem is tight with gamma, and "
        "would be n^2 too large with gamma/n, so no reading makes both parts say what they should; and nothing would "
        "be gained by seeing sums only.",
        survives=values["local, step over n"] > values["printed"] * NUMERICAL,
        correction="Sampling revealed: K/(alpha-1) log(1-q+q exp((alpha-1) 8 alpha gamma^2 L^2/sigma^2)), q = m/n. "
        "With the "
        "noise on the sum, exact states and Poisson samples the hidden sample does amplify (Theorem P).",
    )


def theorem_4(results: Results) -> Objection:
    """The walk."""
    asked, values = _first(results, "theorem decentralized")
    all_visits = values["printed, all visits"]
    return Objection(
        claim="Algorithm 4: what another user on the walk learns is (alpha, 8 alpha K_i L^2 gamma^2 ln n/(n "
        "sigma^2))-RDP",
        place="Theorem 4",
        argument=(
            "Two users, linear losses, lambda = 1/2. User 2 knows its own state, so what it receives after m visits "
            "of user 1",
            "is user 1's value with user 1's noise alone: shift s <- (s + 2 gamma L)/2, variance v <- (v + "
            "sigma^2/4)/4.",
            "Then it knows user 1's state and the next stretch starts anew; the next user is drawn with probability "
            "1/2.",
            "So the divergence of path and view, which is averaged over paths as the theorem does, follows exactly.",
            "In the proof: a visit is (1 + 2 lambda/n)-Lipschitz, visited users store what they saw, and j knows its "
            "noise.",
        ),
        shown=f"n = 2, sigma = {shown(asked['std'])}, order 2, K = {asked['visits']}: exact {shown(values['exact'])}, "
        f"printed {shown(values['printed'])} with K_i = K/2 and {shown(all_visits)} with K_i = K, the most that a path "
        f"allows; above the bound from K = {values['fails from']} on with K_i = K/2 and from K = "
        f"{values['fails from, all visits']} on with K_i = K"
        + "".join(
            f" (K = {other['visits']} does not violate it)"
            for other, found in results.rows("theorem decentralized")
            if found["exact"] <= found["printed"]
        ),
        stands=values["exact"] > values["printed"] * NUMERICAL,
        reading=f"K_i = K, the most that any path allows: the exact value is "
        f"{'above' if values['exact'] > all_visits else 'below'} that, too. With the step gamma/n in the prox the "
        f"local bound alone, {shown(values['local, step over n'])}, gives the theorem; but then the local part of "
        "Theorem 3, with the same gamma, is n^2 too large. For many users the excess that is known, for a path that is "
        "decoded, is small.",
        survives=values["exact"] > all_visits * NUMERICAL and values["local, step over n"] > all_visits * NUMERICAL,
        correction="For Algorithm 4 only the local bound is proved, K/(alpha-1) log(1+(exp((alpha-1) 8 alpha gamma^2 "
        f"L^2/sigma^2)-1)/n), here {shown(values['ours'])}. A walk without memory at the users has amplification "
        "(docs/privacy.md, stateless walk).",
    )


def figure_1(results: Results) -> Objection:
    """The noise of the public code."""
    rows = [(asked["epsilon"], values) for asked, values in results.rows("spending", method="admm")]
    epsilon, values = max(rows, key=lambda row: row[0])
    broken = [nominal for nominal, found in rows if found["sums, at least"] > nominal]
    return Objection(
        claim=f"The runs of Figure 1 have the epsilon of its axis (delta {DELTA:g})",
        place="Figure 1 and its public code (padadmm)",
        argument=(
            "scale_noise = 2 C^2 K/(rho n^2) is a variance, and multiplies a standard normal.",
            "It is made for a mean over n users, and added to each user's own update, which is short by n once more.",
            "A user that is replaced moves its update by 4 lambda C, twice what is used.",
            "The pair: a user whose label is huge and positive, or huge and negative; every update is then clipped "
            "to +-C.",
        ),
        shown=f"at {shown(epsilon)} as stated, whoever sees sums only has epsilon of at least "
        f"{shown(values['sums, at least'])}, whoever sees every update {shown(values['at most'])}; {len(broken)} of "
        f"{len(rows)} epsilons are exceeded",
        stands=bool(broken),
        reading="Only sums are seen, and kappa, the start and the scaling of columns, which come from the data, are "
        "public. (All this is about the public code: of a figure that other code made it would say nothing.)",
        survives=bool(broken),
        correction="Noise on the sum with a total fixed for the observer: the corrected runs of this page, with "
        "their cards.",
    )


def theorem_7(results: Results) -> Objection:
    """A constraint that shrinks."""
    asked, values = _first(results, "theorem general")
    return Objection(
        claim="Algorithm 5, general A: (alpha, 8 alpha K |A|^2 L^2 gamma^2/(n^2 omega_A^2 sigma^2))-RDP",
        place="Theorem 7",
        argument=(
            "The term |A x - v|^2/(2 gamma) is strongly convex with omega_A^2/gamma, not omega_A/gamma.",
            "The two optimality conditions give |A dx|^2/gamma <= (2L/n)|dx| <= (2L/n)|A dx|/omega_A,",
            "so u moves by 4 lambda L gamma/(n omega_A): |A| does not belong there, and makes the bound too small if "
            "|A| < 1.",
        ),
        shown=f"A = {shown(asked['matrix'])}, n = {asked['parties']}: printed {shown(values['printed'])}, exact "
        f"{shown(values['exact'])}",
        stands=values["exact"] > values["printed"] * NUMERICAL,
        reading="|A| >= 1, as in the consensus problems of the paper: then the printed bound is larger than what is "
        "needed.",
        survives=any(
            found["exact"] > found["printed"] * NUMERICAL
            for setting, found in results.rows("theorem general")
            if setting["matrix"] >= 1
        ),
        correction="8 alpha K L^2 gamma^2/(n^2 omega_A^2 sigma^2), for A of full column rank.",
    )


def recursion(results: Results) -> Objection:
    """What is fed back."""
    _, values = _first(results, "recursion")
    return Objection(
        claim="Algorithms 3 and 4 set z_hat <- z + (1/n) sum of the changes of u, z = prox_{gamma r}(z_hat)",
        place="Algorithms 3 and 4",
        argument=(
            "The mean of the u is z_hat, not z = prox(z_hat).",
            "A fixed point of the printed line has z = prox_{gamma r}(z), that is, z minimises r alone.",
            "Without noise on a lasso it goes to zero.",
        ),
        shown=f"lasso of one feature, minimiser {shown(values['minimiser'])}: the printed line ends at "
        f"{shown(values['printed'])}, with z_hat kept {shown(values['ours'])}",
        stands=abs(values["printed"] - values["minimiser"]) > 1e-6,
        reading="r = 0: then z = z_hat and both lines are the same.",
        survives=values["apart, r = 0"] > 1e-6,
        correction="z_hat <- z_hat + (1/n) sum of the changes of u, z = prox_{gamma r}(z_hat), starting from the "
        "mean of the u.",
    )


def theorem_1(results: Results) -> Objection:
    """The proof, not the statement."""
    asked, values = _first(results, "theorem relaxation")
    return Objection(
        claim="Noisy block fixed-point iterations converge linearly to a neighbourhood, with the proof's choice of "
        "lambda",
        place="Theorem 1, proof",
        argument=(
            f"The proof takes lambda above 1 for every tau that is not small ({asked['relaxation']:g} at tau = "
            f"{asked['contraction']:g}).",
            "R(u) = -tau u contracts by tau, and u + lambda (R(u) - u) = (1 - lambda (1 + tau)) u.",
            f"It grows for every lambda above 2/(1 + tau) = {shown(values['largest'])}.",
        ),
        shown=f"with the proof's lambda a step multiplies the distance by {shown(values['factor'])}, with lambda = 1 "
        f"by "
        f"{shown(values['factor at 1'])}",
        stands=values["factor"] > 1,
        reading="The statement with lambda = 1, which is how the theorem is used: it is true, and loose.",
        survives=values["factor at 1"] > 1,
        correction="(1-q(1-tau^2))^k D + p sigma^2/(1-tau^2) for lambda = 1, attained by R(u) = tau u "
        "(consenso.theory).",
    )


CASES = (
    Case(name="theorem-2", groups=("theorem centralized",), object_to=theorem_2),
    Case(name="theorem-3", groups=("theorem federated",), object_to=theorem_3),
    Case(name="theorem-4", groups=("theorem decentralized",), object_to=theorem_4),
    Case(name="figure-1", groups=("spending",), object_to=figure_1),
    Case(name="recursion", groups=("recursion",), object_to=recursion),
    Case(name="theorem-7", groups=("theorem general",), object_to=theorem_7),
    Case(name="theorem-1", groups=("theorem relaxation",), object_to=theorem_1),
)
