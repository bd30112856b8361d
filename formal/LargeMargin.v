(* The Large Margin Mechanism of the paper, from its three parts.

   Page: docs/proofs/large-margin.md ("Proof", "Together").

   What is proved here is how the parts make the whole: a pure release of (m, l), a certificate that
   holds but for delta1, and a draw that is private where the certificate holds. M is in NoisyMaximum.v,
   S in AboveThreshold.v, A in RestrictedExponential.v. That the printed thresholds T_r give the
   certificate is a hypothesis. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Privmax Require Import Definitions Scores Exponential RestrictedExponential.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section ThreeParts.
Variables (R : realFieldType) (O1 : eqType) (O2 : finType).
(* The probabilities of (m, l) in D and D', and of an item given (m, l). (m, l) is one of countably many
   outcomes: sets of them are finite sequences without repetition. *)
Variables (p p' : O1 -> R) (A A' : O1 -> O2 -> R) (V : pred O1) (r1 r2 delta1 beta : R).
Hypotheses (r10 : 0 <= r1) (r20 : 0 <= r2) (b0 : 0 <= beta) (p0 : forall o, 0 <= p o).
Hypothesis p'0 : forall o, 0 <= p' o.
Hypothesis p_le1 : forall s, uniq s -> \sum_(o <- s) p o <= 1.
Hypothesis A_law : forall o, is_law (A o).
Hypothesis A'_ge0 : forall o i, 0 <= A' o i.
(* "(m, l) is 2 epsilon/3-private" *)
Hypothesis pure : forall o, p o <= r1 * p' o.
(* "The certificate. P_D((m, l) not in V) <= 2 delta/3" *)
Hypothesis certificate : forall s, uniq s -> \sum_(o <- s | ~~ V o) p o <= delta1.
(* "The draw. For (m, l) in V" it is (epsilon/3, delta/3)-private, from D to D'. *)
Hypothesis draw : forall o, V o -> close (A o) (A' o) r2 beta.

(* "Together. For a set S of triples let S_(m,l) be the items it holds with (m, l)." s are the (m, l) that
   occur in S. *)
Theorem large_margin_from_parts (s : seq O1) (S : O1 -> {set O2}) : uniq s ->
  \sum_(o <- s) p o * Pr (A o) (S o) <=
  r1 * r2 * (\sum_(o <- s) p' o * Pr (A' o) (S o)) + (beta + delta1).
Proof.
move=> us; rewrite (bigID V) /= addrA; apply: ler_add; last first.
  apply: (le_trans _ (certificate us)); apply: ler_sum => o _.
  by rewrite ler_pimulr // Pr_le1.
have step o : V o -> p o * Pr (A o) (S o) <= r1 * r2 * (p' o * Pr (A' o) (S o)) + p o * beta.
  move=> Vo; apply: (le_trans (ler_wpmul2l (p0 o) (draw Vo (S o)))).
  rewrite mulrDr ler_add2r mulrACA; apply: ler_wpmul2r => //.
  by rewrite mulr_ge0 // Pr_ge0.
apply: (le_trans (ler_sum _ step)); rewrite big_split /=; apply: ler_add.
  rewrite -big_distrr /=; apply: ler_wpmul2l; first exact: mulr_ge0.
  rewrite [X in _ <= X](bigID V) /= ler_addl; apply: sumr_ge0 => o _.
  by rewrite mulr_ge0 // Pr_ge0.
rewrite -big_distrl /= ler_pimull //; apply: le_trans (p_le1 us).
by rewrite [X in _ <= X](bigID V) /= ler_addl; apply: sumr_ge0.
Qed.

End ThreeParts.
