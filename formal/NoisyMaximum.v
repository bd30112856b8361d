(* Discrete Laplace noise, and the noisy maximum.

   Page: docs/proofs/noisy-maximum.md. x = e^(-1/b), 0 < x < 1, where b is the scale; e^(s/b) =
   x^-s. *)
From Privmax Require Import Prelude Definitions Scores.

Section Noise.
Variables (R : realFieldType) (x : R).
Hypotheses (x0 : 0 < x) (x1 : x < 1).

(* "P(X = k) is proportional to e^(-|k|/b)": the factor is (1 - x)/(1 + x). *)
Definition laplace (k : int) : R := (1 - x) / (1 + x) * x ^+ `|k|.

(* P(X <= k), in closed form. *)
Definition laplace_cdf (k : int) : R :=
  match k with Posz n => 1 - x ^+ n.+1 / (1 + x) | Negz n => x ^+ n.+1 / (1 + x) end.

Let y0 : 0 < 1 + x. Proof. by rewrite addr_gt0 ?ltr01. Qed.
Let yn : 1 + x != 0. Proof. by rewrite gt_eqF. Qed.
Let xn : x != 0. Proof. by rewrite gt_eqF. Qed.
Let p0 n : 0 < x ^+ n. Proof. exact: exprn_gt0. Qed.
Let x1' : x <= 1. Proof. exact: ltW. Qed.

Lemma laplace_ge0 k : 0 <= laplace k.
Proof. by rewrite !mulr_ge0 ?invr_ge0 ?subr_ge0 ?ltW. Qed.

(* The closed form is the sum of the probabilities: it grows by P(X = k) at k. Half of what is not
   at 0 lies on each side, and the rest beyond -n is x^n / (1 + x), which falls below every positive
   number. *)
Lemma laplace_cdf_step k : laplace_cdf k - laplace_cdf (k - 1) = laplace k.
Proof.
case: k => [[|n]|n].
- rewrite -[0%N%:Z - 1]/(Negz 0) /= /laplace expr0 mulr1 expr1 -{1}(divff yn).
  by rewrite -!mulrBl addrK.
- have -> : Posz n.+1 - 1 = Posz n by rewrite -addn1 PoszD addrK.
  rewrite /= /laplace /=.
  rewrite [X in X = _](_ : _ = x ^+ n.+1 / (1 + x) - x ^+ n.+2 / (1 + x)); last first.
    by rewrite opprB addrC addrA subrK.
  by rewrite -mulrBl [RHS]mulrAC [(1 - x) * _]mulrBl mul1r -exprS.
- have -> : Negz n - 1 = Negz n.+1 by rewrite !NegzE -opprD -PoszD addn1.
  by rewrite /= /laplace /= -mulrBl [RHS]mulrAC [(1 - x) * _]mulrBl mul1r -exprS.
Qed.

Lemma laplace_cdf_mono1 k : laplace_cdf k <= laplace_cdf (k + 1).
Proof. by rewrite -subr_ge0 -{2}[k](addrK 1) laplace_cdf_step laplace_ge0. Qed.

Lemma laplace_cdf_mono k k' : k <= k' -> laplace_cdf k <= laplace_cdf k'.
Proof.
rewrite -subr_ge0 => /gez0_abs; set n := absz _ => e.
have -> : k' = k + n%:Z by rewrite e addrC subrK.
elim: n {e} => [|n IH]; first by rewrite addr0.
by apply: (le_trans IH); rewrite -addn1 PoszD addrA laplace_cdf_mono1.
Qed.

Lemma laplace_cdf_in k : 0 <= laplace_cdf k <= 1.
Proof.
have small n : 0 <= x ^+ n.+1 / (1 + x) <= 1.
  rewrite divr_ge0 ?(ltW (p0 _)) ?(ltW y0) //= ler_pdivr_mulr // mul1r.
  by rewrite (@le_trans _ _ 1) ?exprn_ile1 ?(ltW x0) // ler_addl ltW.
case: k => n /=; have /andP[a b] := small n; last by rewrite a b.
by rewrite subr_ge0 b ler_subl_addl ler_addr.
Qed.

(* "Two facts about discrete Laplace noise of scale b: probabilities of values k apart have a ratio
   of at most e^(k/b), and hence so has its distribution function at points k apart." *)
Lemma laplace_ratio (k k' : int) (s : nat) : `|k - k'| <= s%:Z ->
  laplace k <= x^-1 ^+ s * laplace k'.
Proof.
move=> near; rewrite /laplace mulrCA; apply: ler_wpmul2l.
  by rewrite divr_ge0 ?subr_ge0 ?ltW.
rewrite exprVn ler_pdivl_mull // -exprD; apply: ler_wiexpn2l; rewrite ?ltW //.
rewrite -lez_nat PoszD !abszE; apply: (le_trans _ (ler_add near (lexx _))).
by rewrite [`|k - k'|]distrC -{1}[k'](subrK k); apply: ler_norm_add.
Qed.

Lemma laplace_cdf_ratio1 k : laplace_cdf (k + 1) <= x^-1 * laplace_cdf k.
Proof.
rewrite ler_pdivl_mull //; case: k => [n|[|n]].
- have step := laplace_cdf_step (n%:Z + 1); rewrite addrK in step.
  have -> : laplace_cdf (n%:Z + 1) = laplace_cdf n + laplace (n%:Z + 1) by rewrite -step
    [RHS]addrC subrK.
  rewrite mulrDr -ler_subr_addl -[X in _ <= X - _]mul1r -mulrBl.
  have -> : x * laplace (n%:Z + 1) = (1 - x) * (x ^+ n.+2 / (1 + x)).
    by rewrite /laplace -PoszD addn1 /= mulrCA -exprS -mulrA [(1 + x)^-1 * _]mulrC.
  apply: ler_wpmul2l; first by rewrite subr_ge0.
  apply: (@le_trans _ _ (laplace_cdf (Negz 0))); last by apply: laplace_cdf_mono.
  rewrite /= expr1; apply: ler_wpmul2r; first by rewrite invr_ge0 ltW.
  by rewrite exprS ler_pimulr ?(ltW x0) // exprn_ile1 // ltW.
- rewrite -[Negz 0 + 1]/(Posz 0) /= expr1 -{1}(divff yn) -mulrBl addrK.
  by rewrite mulrA mulr1.
have -> : Negz n.+1 + 1 = Negz n by rewrite !NegzE -[n.+2]addn1 PoszD opprD addrNK.
by rewrite /= mulrA -exprS.
Qed.

Lemma laplace_cdf_ratio (k k' : int) (s : nat) : k <= k' + s%:Z ->
  laplace_cdf k <= x^-1 ^+ s * laplace_cdf k'.
Proof.
move=> le; apply: (le_trans (laplace_cdf_mono le)) => {le k}.
elim: s => [|s IH]; first by rewrite addr0 expr0 mul1r.
rewrite -addn1 PoszD addrA; apply: (le_trans (laplace_cdf_ratio1 _)).
by rewrite addn1 exprS -mulrA; apply: ler_wpmul2l => //; rewrite invr_ge0 ltW.
Qed.

(* "Tail lemma. For integer n >= 0, P(X > n) <= e^(-n/b) / 2, and the same for P(X < -n). P(X >=
   n+1) = q^n q/(1+q) <= q^n / 2, as q <= 1." *)
Lemma half_bound (n : nat) : x ^+ n.+1 / (1 + x) <= x ^+ n / 2%:R.
Proof.
rewrite exprSr -mulrA; apply: ler_wpmul2l; first exact/ltW/p0.
rewrite ler_pdivr_mulr // ler_pdivl_mull ?ltr0n //.
by rewrite mulr_natl mulr2n ler_add2r.
Qed.

Lemma laplace_tail (n : nat) : 1 - laplace_cdf n <= x ^+ n / 2%:R.
Proof. by rewrite /= subKr half_bound. Qed.

Lemma laplace_tail_low (n : nat) : laplace_cdf (- n%:Z - 1) <= x ^+ n / 2%:R.
Proof.
have -> : - n%:Z - 1 = Negz n by rewrite NegzE -opprD -PoszD addn1.
exact: half_bound.
Qed.

(* "Releasing q_(1) + X": the probability of m. *)
Definition noisy_maximum (I : finType) (q : I -> int) (m : int) : R := laplace (m - stat q 0).

Lemma noisy_maximum_ratio (I : finType) (s : nat) (q q' : I -> int) (m : int) : (0 < #|I|)%N ->
  replace_by s q q' -> noisy_maximum q m <= x^-1 ^+ s * noisy_maximum q' m.
Proof.
move=> K0 nb; apply: laplace_ratio; rewrite opprB addrC addrA subrK.
exact: stat_lipschitz.
Qed.

(* "Statement. Releasing q_(1) + X is (epsilon, 0)-differentially private under either relation: for
   every integer m, P(m)/P'(m) <= e^(s/b)." *)
Theorem noisy_maximum_private (I : finType) (s : nat) : (0 < #|I|)%N ->
  countably_private (@replace_by I s) (@noisy_maximum I) (x^-1 ^+ s) 0.
Proof.
move=> K0; apply: pointwise_countably_private => [|q q' nb m]; last exact: noisy_maximum_ratio.
by rewrite exprn_ge0 // invr_ge0 ltW.
Qed.

Theorem noisy_maximum_add_remove (I : finType) : (0 < #|I|)%N ->
  countably_private (@add_remove I) (@noisy_maximum I) x^-1 0.
Proof.
move=> K0 q q' /add_remove_replace nb; rewrite -[x^-1]expr1.
exact: (@noisy_maximum_private I 1).
Qed.

End Noise.
