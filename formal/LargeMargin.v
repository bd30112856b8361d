(* The Large Margin Mechanism of the paper, from its three parts.

   Page: docs/proofs/large-margin.md ("Proof", "Together").

   What is proved here is how the parts make the whole: a pure release of (m, l), a certificate that
   holds but for delta1, and a draw that is private where the certificate holds; and that thresholds
   T_r = a1 + a2 + a3(r) + t_r give the certificate but for the tails of the noise beyond a1, a2 and
   a3(r). M is in NoisyMaximum.v, S in AboveThreshold.v, A in RestrictedExponential.v. That the printed
   logarithms make the three tails add up to 2 delta/3 is not proved here, and nor is the one statement
   that puts all of this together. *)
From Privmax Require Import Prelude Definitions Scores Exponential RestrictedExponential NoisyMaximum AboveThreshold.

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

(* Infinite sums of numbers that are not negative. *)
Section Sums.
Variable R : realFieldType.
Implicit Types (f h : int -> R).

Lemma part_sum f (s U : seq int) : (forall g, 0 <= f g) -> uniq s -> uniq U -> {subset s <= U} ->
  \sum_(g <- s) f g <= \sum_(g <- U) f g.
Proof.
move=> f0 us uU sub; rewrite [X in _ <= X](bigID (mem s)) /=.
have -> : \sum_(g <- s) f g = \sum_(g <- U | g \in s) f g.
  rewrite -[RHS]big_filter; apply: perm_big; apply: uniq_perm => //; first exact: filter_uniq.
  by move=> g; rewrite mem_filter; case: (boolP (g \in s)) => //= /sub ->.
by rewrite ler_addl; apply: sumr_ge0.
Qed.

Lemma is_sum_add f h v w : (forall g, 0 <= f g) -> (forall g, 0 <= h g) -> is_sum f v -> is_sum h w ->
  is_sum (fun g => f g + h g) (v + w).
Proof.
move=> f0 h0 [fb fn] [hb hn]; split=> [s us|e e0].
  by rewrite big_split; apply: ler_add; [apply: fb | apply: hb].
have e2 : 0 < e / 2%:R by rewrite divr_gt0 ?ltr0n.
have [s us ls] := fn _ e2; have [s' us' ls'] := hn _ e2.
exists (undup (s ++ s')); first exact: undup_uniq.
have -> : v + w - e = (v - e / 2%:R) + (w - e / 2%:R).
  by rewrite addrACA -opprD -mulrDl -mulr2n -[e *+ 2]mulr_natr mulfK ?pnatr_eq0.
rewrite big_split /=; apply: ltr_le_add.
  apply: (lt_le_trans ls); apply: part_sum; rewrite ?undup_uniq // => g.
  by rewrite mem_undup mem_cat => ->.
apply: (ltW (lt_le_trans ls' _)); apply: part_sum; rewrite ?undup_uniq // => g.
by rewrite mem_undup mem_cat orbC => ->.
Qed.

Lemma is_sum_big (T : Type) (l : seq T) (P : pred T) (f : T -> int -> R) (v : T -> R) :
  (forall i g, 0 <= f i g) -> (forall i, P i -> is_sum (f i) (v i)) ->
  is_sum (fun g => \sum_(i <- l | P i) f i g) (\sum_(i <- l | P i) v i).
Proof.
move=> f0 sums; elim: l => [|i l IH].
  rewrite big_nil; split=> [s _|e e0]; first by rewrite big1 // => g _; rewrite big_nil.
  by exists [::] => //; rewrite big_nil sub0r oppr_lt0.
rewrite big_cons; case: (boolP (P i)) => Pi.
  have [b n] := is_sum_add (f0 i) (fun g => sumr_ge0 _ (fun i _ => f0 i g)) (sums i Pi) IH.
  split=> [s us|e e0].
    by apply: le_trans (b s us); apply: ler_sum => g _; rewrite big_cons Pi.
  have [s us lt] := n e e0; exists s => //; apply: lt_le_trans lt _; apply: ler_sum => g _.
  by rewrite big_cons Pi.
have [b n] := IH; split=> [s us|e e0].
  by apply: le_trans (b s us); apply: ler_sum => g _; rewrite big_cons (negbTE Pi).
have [s us lt] := n e e0; exists s => //; apply: lt_le_trans lt _; apply: ler_sum => g _.
by rewrite big_cons (negbTE Pi).
Qed.

Lemma is_sum_le f v B : is_sum f v -> (forall s, uniq s -> \sum_(g <- s) f g <= B) -> v <= B.
Proof.
move=> [_ near] le; rewrite leNgt; apply/negP => lt.
have pos : 0 < v - B by rewrite subr_gt0.
by have [s us] := near _ pos; rewrite subKr ltNge le.
Qed.

End Sums.

(* "The certificate." The search of the paper looks at ranks 1 ... n; query r is about rank r + 1 here. *)
Section Certificate.
Variables (R : realFieldType) (I : finType) (n : nat) (q : I -> int).
(* The probability of the noise of M and of the shared noise of S, and P(Z_r <= k). *)
Variables (X G Z : int -> R).
Hypotheses (X0 : forall k, 0 <= X k) (G0 : forall g, 0 <= G g) (Z01 : forall k, 0 <= Z k <= 1).
Hypothesis Z_mono : forall k k', k <= k' -> Z k <= Z k'.
Hypothesis X_sum : forall s, uniq s -> \sum_(k <- s) X k <= 1.
Hypothesis G_sum : forall s, uniq s -> \sum_(g <- s) G g <= 1.
(* The tails: "Z <= a1, G >= -a2 and Z_r >= -a3(r) for all r", but for eta1, eta2 and eta3(r). *)
Variables (a1 a2 : int) (a3 margin : nat -> int) (eta1 eta2 : R) (eta3 : nat -> R).
Hypothesis X_tail : forall s, uniq s -> \sum_(k <- s | a1 < k) X k <= eta1.
Hypothesis G_tail : forall s, uniq s -> \sum_(g <- s | g < - a2) G g <= eta2.
Hypothesis Z_tail : forall r, Z (- a3 r - 1) <= eta3 r.
Hypotheses (eta2_ge0 : 0 <= eta2) (eta3_ge0 : forall r, 0 <= eta3 r).

(* "T_r = a1 + a2 + a3(r) + t_r", and "F_r = m - q_(r+1) - T_r". *)
Definition threshold (r : nat) : int := a1 + a2 + a3 r + margin r.
Definition query (m : int) (r : nat) : int := m - stat q r.+1 - threshold r.

(* The search stops at l without the margin. *)
Definition bad (r : nat) : bool := gap q r.+1 <= margin r.

Local Notation stop m g l := (stops n Z (query m) g l).

Let pass_in m g r : 0 <= passes Z (query m) g r <= 1. Proof. exact: Z01. Qed.

Lemma failed_in m g l : 0 <= \prod_(r < l) (1 - passes Z (query m) g r) <= 1.
Proof.
elim: l => [|l /andP[f0 f1]]; first by rewrite big_ord0 ler01 lexx.
have /andP[a b] := pass_in m g l; rewrite big_ord_recr /= mulr_ge0 ?subr_ge0 //=.
by rewrite mulr_ile1 ?subr_ge0 // ler_subl_addr ler_addl.
Qed.

Lemma stop_ge0 m g l : 0 <= stop m g l.
Proof.
rewrite /stops mulr_ge0 //; first by case/andP: (failed_in m g l).
by case: ifP => _; rewrite ?ler01 //; case/andP: (pass_in m g l).
Qed.

(* All answers together have probability at most 1. *)
Lemma stop_sum m g (P : pred 'I_n) : \sum_(l < n | P l) stop m g l <= 1.
Proof.
apply: (@le_trans _ _ (\sum_(l < n) stop m g l)).
  by rewrite [X in _ <= X](bigID P) /= ler_addl sumr_ge0 // => l _; apply: stop_ge0.
have tele j : (j <= n)%N -> \sum_(l < j) stop m g l = 1 - \prod_(r < j) (1 - passes Z (query m) g r).
  elim: j => [|j IH] jn; first by rewrite !big_ord0 subrr.
  rewrite big_ord_recr [in RHS]big_ord_recr /= (IH (ltnW jn)) /stops jn.
  by rewrite mulrBr mulr1 opprB addrA addrAC -addrA addrC.
rewrite tele // ler_subl_addr ler_addl.
by case/andP: (failed_in m g n).
Qed.

(* "If then the search stops at l, ... gap_l > t_l": so it stops at a bad l only where Z_l < -a3(l). *)
Lemma bad_stop m g l : m - stat q 0 <= a1 -> - a2 <= g -> (l < n)%N -> bad l -> stop m g l <= eta3 l.
Proof.
move=> ma ga ln bl; have /andP[f0 f1] := failed_in m g l; have /andP[p0 p1] := pass_in m g l.
rewrite /stops ln; apply: (@le_trans _ _ (passes Z (query m) g l)); first by rewrite ler_pimull.
apply: le_trans (Z_tail l); apply: Z_mono; rewrite ler_add2r ler_subl_addr.
rewrite /bad /gap in bl; rewrite ler_subl_addr in ma; rewrite ler_subl_addr in bl.
rewrite /query /threshold.
apply: (@le_trans _ _ (a1 + (margin l + stat q l.+1) - stat q l.+1 - (a1 + a2 + a3 l + margin l))).
  by rewrite !ler_add2r; apply: (le_trans ma); rewrite ler_add2l.
rewrite addrA addrK opprD addrA addrAC addrK !opprD !addrA subrr sub0r.
by rewrite [X in X <= _]addrC ler_add2l.
Qed.

(* S m l is the probability that the search stops at l, given m. *)
Variable S : int -> nat -> R.
Hypothesis S_law : forall m l, answer n G Z (query m) l (S m l).

Lemma bad_le1 m : \sum_(l < n | bad l) S m l <= 1.
Proof.
apply: (is_sum_le (is_sum_big (index_enum _) (v := fun l : 'I_n => S m l) _ (fun l _ => S_law m l))).
  by move=> l g; rewrite mulr_ge0 // stop_ge0.
move=> s us; apply: le_trans (G_sum us); apply: ler_sum => g _.
by rewrite -big_distrr /= ler_pimulr // stop_sum.
Qed.

Lemma bad_small m : m - stat q 0 <= a1 ->
  \sum_(l < n | bad l) S m l <= eta2 + \sum_(l < n) eta3 l.
Proof.
move=> ma.
apply: (is_sum_le (is_sum_big (index_enum _) (v := fun l : 'I_n => S m l) _ (fun l _ => S_law m l))).
  by move=> l g; rewrite mulr_ge0 // stop_ge0.
move=> s us; rewrite (bigID (fun g => g < - a2)) /=; apply: ler_add.
  apply: le_trans (G_tail us); apply: ler_sum => g _.
  by rewrite -big_distrr /= ler_pimulr // stop_sum.
have E0 : 0 <= \sum_(l < n) eta3 l by apply: sumr_ge0.
apply: (@le_trans _ _ (\sum_(g <- s | ~~ (g < - a2)) G g * \sum_(l < n) eta3 l)).
  apply: ler_sum => g; rewrite -leNgt => ga; rewrite -big_distrr /=; apply: ler_wpmul2l => //.
  rewrite [X in _ <= X](bigID (fun l : 'I_n => bad l)) /= -[X in X <= _]addr0.
  apply: ler_add; last by apply: sumr_ge0.
  by apply: ler_sum => l bl; apply: bad_stop.
rewrite -big_distrl /= ler_pimull //; apply: le_trans (G_sum us).
by rewrite [X in _ <= X](bigID (fun g => g < - a2)) /= ler_addr; apply: sumr_ge0.
Qed.

(* "P_D((m, l) not in V) <= 2 delta/3": the sum of the three tails. *)
Theorem certificate_holds (ms : seq int) : uniq ms ->
  \sum_(m <- ms) X (m - stat q 0) * (\sum_(l < n | bad l) S m l) <=
  eta1 + (eta2 + \sum_(l < n) eta3 l).
Proof.
move=> um; have E0 : 0 <= eta2 + \sum_(l < n) eta3 l by rewrite addr_ge0 // sumr_ge0.
have us : uniq (map (fun m => m - stat q 0) ms) by rewrite map_inj_uniq // => a b /addIr.
rewrite (bigID (fun m => a1 < m - stat q 0)) /=; apply: ler_add.
  have := X_tail us; rewrite big_map; apply: le_trans; apply: ler_sum => m _.
  by rewrite ler_pimulr // bad_le1.
apply: (@le_trans _ _ (\sum_(m <- ms | ~~ (a1 < m - stat q 0)) X (m - stat q 0) *
    (eta2 + \sum_(l < n) eta3 l))).
  by apply: ler_sum => m; rewrite -leNgt => ma; apply: ler_wpmul2l => //; apply: bad_small.
rewrite -big_distrl /= ler_pimull //; have := X_sum us; rewrite big_map; apply: le_trans.
by rewrite [X in _ <= X](bigID (fun m => a1 < m - stat q 0)) /= ler_addr; apply: sumr_ge0.
Qed.

End Certificate.

(* Finite parts of the tail of discrete Laplace noise are at most its distribution function. *)
Section LaplaceParts.
Variables (R : realFieldType) (x : R).
Hypotheses (x0 : 0 < x) (x1 : x < 1).

Lemma laplace_interval (k : int) (n : nat) :
  \sum_(j < n) laplace x (k - j%:Z) = laplace_cdf x k - laplace_cdf x (k - n%:Z).
Proof.
elim: n => [|n IH]; first by rewrite big_ord0 subr0 subrr.
rewrite big_ord_recr /= IH -(laplace_cdf_step x0) addrA subrK.
by rewrite -addn1 PoszD opprD addrA.
Qed.

Lemma laplace_part (s : seq int) (k : int) : uniq s ->
  \sum_(g <- s | g <= k) laplace x g <= laplace_cdf x k.
Proof.
move=> us; rewrite -big_filter; set t := filter _ s.
pose n := (\max_(g <- t) `|(k - g)%R|%N).+1.
pose U := [seq k - j%:Z | j <- iota 0 n].
apply: (@le_trans _ _ (\sum_(g <- U) laplace x g)).
  apply: part_sum; first exact: laplace_ge0.
  - exact: filter_uniq.
  - by rewrite map_inj_uniq ?iota_uniq // => a b /addrI /oppr_inj [].
  move=> g gt; apply/mapP; exists `|(k - g)%R|%N.
    by rewrite mem_iota /= add0n ltnS; exact: (@leq_bigmax_seq _ t xpredT (fun g => `|(k - g)%R|%N) g gt isT).
  have le : g <= k by move: gt; rewrite mem_filter => /andP[].
  by rewrite gez0_abs ?subr_ge0 // subKr.
rewrite big_map -[iota 0 n]/(index_iota 0 n) big_mkord laplace_interval.
rewrite ler_subl_addr ler_addl; by case/andP: (laplace_cdf_in x0 x1 (k - n%:Z)).
Qed.

Lemma laplace_sum (s : seq int) : uniq s -> \sum_(g <- s) laplace x g <= 1.
Proof.
move=> us; pose k := (\max_(g <- s) `|g|%N)%:Z.
have /andP[_ le1] := laplace_cdf_in x0 x1 k; apply: le_trans le1.
apply: le_trans (laplace_part k us); rewrite big_seq_cond [X in _ <= X]big_seq_cond.
rewrite (eq_bigl (fun g => (g \in s) && (g <= k))) // => g; rewrite andbT.
case: (boolP (g \in s)) => //= gs; apply/esym; apply: (le_trans (ler_norm g)).
by rewrite -abszE lez_nat; exact: (@leq_bigmax_seq _ s xpredT (fun g => `|g|%N) g gs isT).
Qed.

(* "P(X < -n) <= e^(-n/b) / 2" *)
Lemma laplace_low (s : seq int) (n : nat) : uniq s ->
  \sum_(g <- s | g < - n%:Z) laplace x g <= x ^+ n / 2%:R.
Proof.
move=> us; apply: le_trans (laplace_tail_low x0 x1 n); apply: le_trans (laplace_part _ us).
by rewrite (eq_bigl (fun g => g <= - n%:Z - 1)) // => g; rewrite ler_subr_addr lez_addr1.
Qed.

(* "P(X > n) <= e^(-n/b) / 2" *)
Lemma laplace_high (s : seq int) (n : nat) : uniq s ->
  \sum_(g <- s | n%:Z < g) laplace x g <= x ^+ n / 2%:R.
Proof.
move=> us; have us' : uniq (map -%R s) by rewrite map_inj_uniq //; apply: oppr_inj.
have := laplace_low n us'; rewrite big_map; apply: le_trans.
rewrite (eq_bigl (fun g => - g < - n%:Z)) => [|g]; last by rewrite ltr_opp2.
by apply: ler_sum => g _; rewrite /laplace abszN.
Qed.

End LaplaceParts.

(* The certificate with discrete Laplace noise: e^(-1/b) is x for M, y for the shared noise and z for that of
   a query. *)
Theorem certificate_laplace (R : realFieldType) (I : finType) (n : nat) (q : I -> int) (x y z : R)
    (a1 a2 : nat) (a3 : nat -> nat) (margin : nat -> int) (S : int -> nat -> R) (ms : seq int) :
  0 < x < 1 -> 0 < y < 1 -> 0 < z < 1 ->
  (forall m l, laplace_answer n y z (query q a1 a2 (fun r => a3 r) margin m) l (S m l)) -> uniq ms ->
  \sum_(m <- ms) laplace x (m - stat q 0) * (\sum_(l < n | bad q margin l) S m l) <=
  x ^+ a1 / 2%:R + (y ^+ a2 / 2%:R + \sum_(l < n) z ^+ a3 l / 2%:R).
Proof.
move=> /andP[x0 x1] /andP[y0 y1] /andP[z0 z1] S_law um.
have half (t : R) k : 0 < t -> 0 <= t ^+ k / 2%:R.
  by move=> t0; rewrite divr_ge0 ?ler0n // exprn_ge0 // ltW.
apply: (certificate_holds (Z := laplace_cdf z) (a1 := a1) (a2 := a2) (a3 := fun r => a3 r)
  (eta3 := fun l => z ^+ a3 l / 2%:R) _ _ _ _ _ _ _ _ _ _ _ S_law um).
- exact: laplace_ge0.
- exact: laplace_ge0.
- exact: laplace_cdf_in.
- exact: laplace_cdf_mono.
- by move=> s us; apply: laplace_sum.
- by move=> s us; apply: laplace_sum.
- by move=> s us; apply: laplace_high.
- by move=> s us; apply: laplace_low.
- by move=> r; apply: laplace_tail_low.
- exact: half.
- by move=> r; apply: half.
Qed.
