(* Above threshold.

   Page: docs/proofs/above-threshold.md.

   The shared noise takes infinitely many values, so the probability of an answer is an infinite sum
   of numbers that are not negative. is_sum says that v is that sum; it holds in any ordered field
   in which the sum exists, as in the real numbers. *)
From Privmax Require Import Prelude Definitions NoisyMaximum.

Section Sum.
Variable R : realFieldType.

(* v is the sum of f over all integers: no finite part exceeds it, and some come as near as you
   like. *)
Definition is_sum (f : int -> R) (v : R) : Prop :=
  (forall s : seq int, uniq s -> \sum_(g <- s) f g <= v) /\
  (forall e, 0 < e -> exists2 s : seq int, uniq s & v - e < \sum_(g <- s) f g).

(* "Substitute g -> g - s in the sum." *)
Lemma sum_shift (f f' : int -> R) (v v' r : R) (d : int) : 0 <= r -> is_sum f v -> is_sum f' v' ->
  (forall g, f g <= r * f' (g + d)) -> v <= r * v'.
Proof.
move=> r0 [_ near] [below' _] le; rewrite leNgt; apply/negP => lt.
have pos : 0 < v - r * v' by rewrite subr_gt0.
have [s us] := near _ pos.
rewrite subKr ltNge => /negP; apply.
apply: (le_trans (ler_sum _ (fun g _ => le g))); rewrite -big_distrr /=.
apply: ler_wpmul2l => //; rewrite -(big_map (fun g => g + d) xpredT f').
by apply: below'; rewrite map_inj_uniq // => a b /addIr.
Qed.

End Sum.

Section AboveThreshold.
Variables (R : realFieldType) (n : nat).
(* G g is the probability of the shared noise, Z k that the noise of a query is at most k. *)
Variables (G : int -> R) (Z : int -> R).
Hypotheses (G0 : forall g, 0 <= G g) (Z01 : forall k, 0 <= Z k <= 1).
Hypothesis Z_mono : forall k k', k <= k' -> Z k <= Z k'.
Implicit Types F : nat -> int.

(* Given g: "A_g(D) is the event that F_r(D) <= Z_r + g for all r < l", and then F_l > Z_l + g. n
   queries; l = n is the answer "none", and "the last factor is absent". *)
Definition passes F (g : int) (r : nat) : R := Z (F r - g - 1).
Definition stops F (g : int) (l : nat) : R :=
  (\prod_(r < l) (1 - passes F g r)) * (if (l < n)%N then passes F g l else 1).

(* "P_D(l) = the sum over g of P(G = g) P(A_g(D)) P(Z_l < F_l(D) - g)" *)
Definition answer F (l : nat) (v : R) : Prop := is_sum (fun g => G g * stops F g l) v.

Let in01 F g r : 0 <= passes F g r <= 1. Proof. exact: Z01. Qed.

Lemma stops_ge0 F g l : 0 <= stops F g l.
Proof.
rewrite /stops mulr_ge0 ?prodr_ge0 // => [r _|].
  by rewrite subr_ge0; case/andP: (in01 F g r).
by case: ifP => _; rewrite ?ler01 //; case/andP: (in01 F g l).
Qed.

Lemma stops_le F F' g g' l r2 : 1 <= r2 ->
  (forall r, F' r - g' <= F r - g) -> (forall r, passes F g r <= r2 * passes F' g' r) ->
  stops F g l <= r2 * stops F' g' l.
Proof.
move=> r21 fail pass; have r20 : 0 <= r2 by apply: le_trans r21.
have left0 H h r : 0 <= 1 - passes H h r by rewrite subr_ge0; case/andP: (in01 H h r).
rewrite /stops mulrCA; apply: ler_pmul.
- by apply: prodr_ge0.
- by case: ifP => _; rewrite ?ler01 //; case/andP: (in01 F g l).
- apply: ler_prod => r _; rewrite left0 ler_add2l ler_opp2; apply: Z_mono.
  by rewrite ler_add2r.
- by case: ifP => _; [apply: pass | rewrite mulr1].
Qed.

(* The noise of the page: the shared noise has ratio r1 at s apart; that of a query has ratio r2 at
   (in general) 2 s apart, or (monotone queries) s apart. *)
Variables (s : int) (r1 r2 : R).
Hypotheses (r11 : 1 <= r1) (r21 : 1 <= r2) (s0 : 0 <= s).
Hypothesis G_ratio : forall g, G g <= r1 * G (g + s).

Let r10 : 0 <= r1. Proof. exact: le_trans r11. Qed.

(* "With the shift. Suppose only that F_r(D') <= F_r(D) + s for all r." *)
Lemma answer_shift F F' l v v' (d : int) :
  (forall k k', k <= k' + d -> Z k <= r2 * Z k') ->
  (forall r, F' r <= F r + s) -> (forall r, F r + s <= F' r + d) ->
  answer F l v -> answer F' l v' -> v <= r1 * r2 * v'.
Proof.
move=> Z_ratio up near Pv Pv'; have r120 : 0 <= r1 * r2.
  by rewrite mulr_ge0 // (le_trans _ r21).
apply: (sum_shift (d := s) r120 Pv Pv') => g; rewrite mulrACA.
apply: ler_pmul => //; first exact: stops_ge0.
apply: stops_le => // r; first by rewrite opprD addrA ler_subl_addr addrAC ler_add2r.
apply: Z_ratio; rewrite opprD [- g - s]addrC !addrA [_ - 1 + d]addrAC [_ - g + d]addrAC.
by rewrite [_ - s + d]addrAC !ler_add2r ler_subr_addr.
Qed.

(* "Monotone, the queries fall from D to D'. No shift. Here epsilon2 alone suffices." *)
Lemma answer_fall F F' l v v' :
  (forall k k', k <= k' + s -> Z k <= r2 * Z k') ->
  (forall r, F' r <= F r) -> (forall r, F r <= F' r + s) ->
  answer F l v -> answer F' l v' -> v <= r1 * r2 * v'.
Proof.
move=> Z_ratio down near Pv Pv'; have r120 : 0 <= r1 * r2.
  by rewrite mulr_ge0 // (le_trans _ r21).
apply: (sum_shift (d := 0) r120 Pv Pv') => g; rewrite addr0 mulrACA.
apply: ler_pmul => //.
- exact: stops_ge0.
- by rewrite ler_pemull.
apply: stops_le => // r; first by rewrite ler_add2r.
by apply: Z_ratio; rewrite [_ - 1 + s]addrAC [_ - g + s]addrAC !ler_add2r.
Qed.

(* "However many queries there are, this is (epsilon, 0)-differentially private with a = 2,
   whichever way each query moves": the noise of a query has ratio r2 = e^epsilon2 at 2 s apart. *)
Theorem above_threshold_private F F' l v v' :
  (forall k k', k <= k' + (s + s) -> Z k <= r2 * Z k') ->
  (forall r, `|F' r - F r| <= s) ->
  answer F l v -> answer F' l v' -> v <= r1 * r2 * v'.
Proof.
move=> Z_ratio nb; apply: (answer_shift Z_ratio) => r; have := nb r; rewrite ler_norml =>
  /andP[a b].
  by rewrite -ler_subl_addl.
rewrite addrA ler_add2r; rewrite ler_subr_addr addrC in a.
by rewrite -ler_subl_addr.
Qed.

(* "with a = 1, if between any two neighbors all queries move the same way" *)
Theorem above_threshold_monotone F F' l v v' :
  (forall k k', k <= k' + s -> Z k <= r2 * Z k') ->
  (forall r, F r <= F' r <= F r + s) \/ (forall r, F' r <= F r <= F' r + s) ->
  answer F l v -> answer F' l v' -> v <= r1 * r2 * v'.
Proof.
move=> Z_ratio [nb|nb].
  by apply: (answer_shift Z_ratio) => r; have /andP[a b] := nb r; rewrite ?ler_add2r.
by apply: (answer_fall Z_ratio) => r; have /andP[a b] := nb r.
Qed.

End AboveThreshold.

(* Both with discrete Laplace noise, on queries of sensitivity s: x1 = e^(-1/b1), x2 = e^(-1/b2)
   with the scales b1 of the shared noise and b2 of a query. Its tails are those of laplace_cdf; no
   hypothesis on them is left. *)
Section Laplace.
Variables (R : realFieldType) (n s : nat) (x1 x2 : R).
Hypotheses (x10 : 0 < x1) (x11 : x1 < 1) (x20 : 0 < x2) (x21 : x2 < 1).

Definition laplace_answer := answer n (laplace x1) (laplace_cdf x2).

Let e1 m (x : R) : 0 < x -> x < 1 -> 1 <= x^-1 ^+ m.
Proof. by move=> x0 x1'; rewrite exprn_ege1 // invf_ge1 // ltW. Qed.

Lemma laplace_shift g : laplace x1 g <= x1^-1 ^+ s * laplace x1 (g + s%:Z).
Proof. by apply: laplace_ratio => //; rewrite opprD addrA subrr add0r normrN. Qed.

Let G0 := laplace_ge0 x10 x11.
Let Z01 := laplace_cdf_in x20 x21.
Let Z_mono := laplace_cdf_mono x20 x21.

Lemma laplace_answer_ratio (F F' : nat -> int) l v v' : (forall r, `|F' r - F r| <= s%:Z) ->
  laplace_answer F l v -> laplace_answer F' l v' -> v <= x1^-1 ^+ s * x2^-1 ^+ (s + s) * v'.
Proof.
move=> nb; apply: (above_threshold_private G0 Z01 Z_mono (e1 s x10 x11) (e1 (s + s) x20 x21)
  laplace_shift _ nb) => k k'.
by rewrite -PoszD; apply: laplace_cdf_ratio.
Qed.

Lemma laplace_answer_monotone (F F' : nat -> int) l v v' :
  (forall r, F r <= F' r <= F r + s%:Z) \/ (forall r, F' r <= F r <= F' r + s%:Z) ->
  laplace_answer F l v -> laplace_answer F' l v' -> v <= x1^-1 ^+ s * x2^-1 ^+ s * v'.
Proof.
move=> nb; apply: (above_threshold_monotone G0 Z01 Z_mono (e1 s x10 x11) (e1 s x20 x21)
  laplace_shift _ nb) => k k'.
exact: laplace_cdf_ratio.
Qed.

(* P F l is the probability that the search stops at l; l = n is "none". *)
Variable P : (nat -> int) -> nat -> R.
Hypothesis P_law : forall F l, laplace_answer F l (P F l).

(* epsilon1 = s/b1 and epsilon2 = 2 s/b2. *)
Theorem above_threshold_laplace :
  private (fun F F' => forall r, `|F' r - F r| <= s%:Z) (fun F (l : 'I_n.+1) => P F l)
    (x1^-1 ^+ s * x2^-1 ^+ (s + s)) 0.
Proof. by move=> F F' nb; apply: pointwise_close => l; apply: laplace_answer_ratio nb _ _. Qed.

(* epsilon1 = s/b1 and epsilon2 = s/b2. *)
Theorem above_threshold_laplace_monotone :
  private
    (fun F F' =>
      (forall r, F r <= F' r <= F r + s%:Z) \/ (forall r, F' r <= F r <= F' r + s%:Z))
    (fun F (l : 'I_n.+1) => P F l) (x1^-1 ^+ s * x2^-1 ^+ s) 0.
Proof.
by move=> F F' nb; apply: pointwise_close => l; apply: laplace_answer_monotone nb _ _.
Qed.

End Laplace.
