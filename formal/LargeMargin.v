(* The Large Margin Mechanism of the paper, from its three parts.

   Page: docs/proofs/large-margin.md ("Proof", "Together").

   How the parts make the whole; the certificate; and the mechanism with discrete Laplace noise from
   one end to the other. M is in NoisyMaximum.v, S in AboveThreshold.v, A in
   RestrictedExponential.v. *)
From Privmax Require Import Prelude Definitions Scores Exponential RestrictedExponential
  NoisyMaximum AboveThreshold.

Section ThreeParts.
Variables (R : realFieldType) (O1 : eqType) (O2 : finType).
(* The probabilities of (m, l) in D and D', and of an item given (m, l). (m, l) is one of countably
   many outcomes: sets of them are finite sequences without repetition. *)
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

(* "Together. For a set S of triples let S_(m,l) be the items it holds with (m, l)." s are the (m,
   l) that occur in S. *)
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

(* The same for a finite set of triples. *)
Lemma sum_triples (f : O1 -> R) (B : O1 -> O2 -> R) (s : seq (O1 * O2)) : uniq s ->
  \sum_(o <- s) f o.1 * B o.1 o.2 =
  \sum_(o <- undup (map fst s)) f o * Pr (B o) [set i | (o, i) \in s].
Proof.
move=> us; pose items o := enum [set i | (o, i) \in s].
have perm : perm_eq s [seq (o, i) | o <- undup (map fst s), i <- items o].
  apply: uniq_perm => //.
    apply: allpairs_uniq_dep => [|o _|]; [exact: undup_uniq | exact: enum_uniq |].
    by move=> [o i] [o' i'] _ _ [-> ->].
  move=> [o i]; apply/idP/allpairsPdep => [os|[o' [i' [_]]]].
    exists o, i; split=> //; last by rewrite mem_enum inE.
    by rewrite mem_undup; apply/mapP; exists (o, i).
  by rewrite mem_enum inE => ? [-> ->].
rewrite (perm_big _ perm) big_allpairs_dep /=; apply: eq_bigr => o _.
by rewrite /Pr /items big_enum big_distrr.
Qed.

Lemma triples_close (s : seq (O1 * O2)) : uniq s ->
  \sum_(o <- s) p o.1 * A o.1 o.2 <=
  r1 * r2 * (\sum_(o <- s) p' o.1 * A' o.1 o.2) + (beta + delta1).
Proof.
by move=> us; rewrite !sum_triples //; apply: large_margin_from_parts; apply: undup_uniq.
Qed.

End ThreeParts.

(* Infinite sums of numbers that are not negative. *)
Section Sums.
Variable R : realFieldType.
Implicit Types (f h : int -> R).

Lemma is_sum_add f h v w : (forall g, 0 <= f g) -> (forall g, 0 <= h g) -> is_sum f v ->
  is_sum h w ->
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

Lemma is_sum_unique f v w : is_sum f v -> is_sum f w -> v = w.
Proof.
move=> fv fw; apply: le_anti; apply/andP.
by split; [apply: is_sum_le fv _; case: fw | apply: is_sum_le fw _; case: fv].
Qed.

End Sums.

(* "The certificate." The search of the paper looks at ranks 1 ... n; query r is about rank r + 1
   here. *)
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
Proof. exact: stops_ge0. Qed.

(* All answers together have probability 1. *)
Lemma stop_some m g j : (j <= n)%N ->
  \sum_(l < j) stop m g l = 1 - \prod_(r < j) (1 - passes Z (query m) g r).
Proof.
elim: j => [|j IH] jn; first by rewrite !big_ord0 subrr.
rewrite big_ord_recr [in RHS]big_ord_recr /= (IH (ltnW jn)) /stops jn.
by rewrite mulrBr mulr1 opprB addrA addrAC -addrA addrC.
Qed.

Lemma stop_total m g : \sum_(l < n.+1) stop m g l = 1.
Proof. by rewrite big_ord_recr /= stop_some // /stops ltnn mulr1 subrK. Qed.

Lemma stop_sum m g (P : pred 'I_n) : \sum_(l < n | P l) stop m g l <= 1.
Proof.
rewrite -(stop_total m g) big_ord_recr /= [X in _ <= X + _](bigID P) /= -addrA ler_addl.
by rewrite addr_ge0 ?stop_ge0 // sumr_ge0 // => l _; apply: stop_ge0.
Qed.

(* "If then the search stops at l, ... gap_l > t_l": so it stops at a bad l only where Z_l <
   -a3(l). *)
Lemma bad_stop m g l : m - stat q 0 <= a1 -> - a2 <= g -> (l < n)%N -> bad l ->
  stop m g l <= eta3 l.
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

Lemma S_ge0 m l : 0 <= S m l.
Proof. by have [below _] := S_law m l; have := below [::] isT; rewrite big_nil. Qed.

Lemma all_le1 m : \sum_(l < n.+1) S m l <= 1.
Proof.
apply: (is_sum_le (is_sum_big (index_enum _) (v := fun l : 'I_n.+1 => S m l) _ (fun l _ =>
  S_law m l))).
  by move=> l g; rewrite mulr_ge0 // stop_ge0.
move=> s us; apply: le_trans (G_sum us); apply: ler_sum => g _.
by rewrite -big_distrr /= stop_total mulr1.
Qed.

Lemma bad_le1 m : \sum_(l < n | bad l) S m l <= 1.
Proof.
apply: le_trans (all_le1 m); rewrite big_ord_recr /= [X in _ <=
  X + _](bigID (fun l : 'I_n => bad l)) /=.
by rewrite -addrA ler_addl addr_ge0 ?S_ge0 // sumr_ge0 // => l _; apply: S_ge0.
Qed.

Lemma bad_small m : m - stat q 0 <= a1 ->
  \sum_(l < n | bad l) S m l <= eta2 + \sum_(l < n) eta3 l.
Proof.
move=> ma.
apply: (is_sum_le (is_sum_big (index_enum _) (v := fun l : 'I_n => S m l) _ (fun l _ =>
  S_law m l))).
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
    by rewrite mem_iota /= add0n ltnS; exact:
      (@leq_bigmax_seq _ t xpredT (fun g => `|(k - g)%R|%N) g gt isT).
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

(* In the real numbers, or any field without infinitely small ones, its probabilities add up to
   one. *)
Section LaplaceTotal.
Variables (R : archiFieldType) (x : R).
Hypotheses (x0 : 0 < x) (x1 : x < 1).

Lemma power_small (e : R) : 0 < e -> exists n, x ^+ n < e.
Proof.
move=> e0; pose b := x^-1 - 1; have b0 : 0 < b by rewrite subr_gt0 invf_gt1.
have bernoulli n : 1 + n%:R * b <= x^-1 ^+ n.
  elim: n => [|n IH]; first by rewrite mul0r addr0 expr0.
  rewrite exprS (_ : x^-1 = 1 + b); last by rewrite addrC subrK.
  apply: (@le_trans _ _ ((1 + b) * (1 + n%:R * b))); last first.
    apply: ler_wpmul2l; first by rewrite addr_ge0 ?ler01 ?(ltW b0).
    by move: IH; rewrite (_ : x^-1 = 1 + b) // addrC subrK.
  have -> : (1 + b) * (1 + n%:R * b) = 1 + n.+1%:R * b + b * (n%:R * b).
    rewrite (_ : n.+1%:R * b = n%:R * b + b); first by rewrite mulrDl mul1r mulrDr mulr1 !addrA.
    by rewrite !mulr_natl mulrSr.
  by rewrite ler_addl !mulr_ge0 ?ler0n ?(ltW b0).
have [n ln] : exists n : nat, (e * b)^-1 < n%:R.
  exists (Num.bound (e * b)^-1); apply: archi_boundP.
  by rewrite invr_ge0 mulr_ge0 ?(ltW e0) ?(ltW b0).
exists n; rewrite -[x]invrK exprVn -[e]invrK ltf_pinv ?posrE ?invr_gt0 ?exprn_gt0 ?invr_gt0 //.
apply: lt_le_trans (bernoulli n); apply: (@lt_le_trans _ _ (n%:R * b));
  last by rewrite ler_addr ler01.
by rewrite -ltr_pdivr_mulr // -invfM.
Qed.

Theorem laplace_total : is_sum (laplace x) 1.
Proof.
split=> [s us|e e0]; first exact: laplace_sum.
have [n xn] := power_small e0; pose k := (n + n).+1.
exists [seq n%:Z - j%:Z | j <- iota 0 k].
  by rewrite map_inj_uniq ?iota_uniq // => a b /addrI /oppr_inj [].
rewrite big_map -[iota 0 k]/(index_iota 0 k) big_mkord laplace_interval //.
have -> : n%:Z - k%:Z = - n%:Z - 1.
  by rewrite /k -addn1 !PoszD !opprD !addrA subrr sub0r.
have a := laplace_tail x0 x1 n; have b := laplace_tail_low x0 x1 n.
apply: (@lt_le_trans _ _ (1 - x ^+ n)); first by rewrite ltr_add2l ltr_opp2.
have -> : x ^+ n = x ^+ n / 2%:R + x ^+ n / 2%:R.
  by rewrite -mulrDl -mulr2n -[_ *+ 2]mulr_natr mulfK ?pnatr_eq0.
rewrite opprD addrA; apply: ler_sub => //.
by rewrite ler_subl_addr -ler_subl_addl.
Qed.

End LaplaceTotal.

(* The certificate with discrete Laplace noise: e^(-1/b) is x for M, y for the shared noise and z
   for that of a query. *)
Theorem certificate_laplace (R : realFieldType) (I : finType) (n : nat) (q : I -> int) (x y z : R)
    (a1 a2 : nat) (a3 : nat -> nat) (margin : nat -> int) (S : int -> nat -> R) (ms : seq int) :
  0 < x < 1 -> 0 < y < 1 -> 0 < z < 1 ->
  (forall m l, laplace_answer n y z (query q a1 a2 (fun r => a3 r) margin m) l (S m l)) ->
    uniq ms ->
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

(* The mechanism of the page, from one end to the other, in units of the sensitivity s.

   w stands for e^(epsilon/(12 s)). Then e^(-1/b) is 1/w for Lap(12 s/epsilon), 1/w^2 for Lap(6
   s/epsilon) and 1/w^4 for Lap(3 s/epsilon); exp(epsilon q_i / (6 s)) is (w^2)^q_i; and e^epsilon
   is w^(12 s). No logarithm is needed: a number a is at least b ln(y) where y <= e^(a/b). *)
Section LargeMargin.
Variables (R : realFieldType) (I : finType) (s n : nat) (w delta : R).
Hypotheses (w1 : 1 < w) (d0 : 0 < delta) (nK : (n < #|I|)%N).
Implicit Types q : I -> int.

(* The public numbers of the threshold. Query r is about rank r + 1, from r = 0. *)
Variables (a1 a2 : nat) (a3 margin : nat -> nat).
(* "a1 = the ceiling of (3/epsilon) ln(3/(2 delta))", or more *)
Hypothesis a1_large : 3%:R / (2%:R * delta) <= (w ^+ 4) ^+ a1.
(* "a2 = the ceiling of (6/epsilon) ln(3/delta)", or more *)
Hypothesis a2_large : 3%:R / delta <= (w ^+ 2) ^+ a2.
(* "a3(r) = the ceiling of (12/epsilon) ln(3 r (r + 1)/delta)", or more *)
Hypothesis a3_large : forall r, (r < n)%N -> (3 * r.+1 * r.+2)%:R / delta <= w ^+ a3 r.
(* "t_r >= 2 + (6/epsilon) ln(3 r/delta)" *)
Hypothesis margin_large : forall r, (r < n)%N ->
  (3 * r.+1)%:R / delta * w ^+ (4 * s) <= (w ^+ 2) ^+ margin r.

(* "S: G ~ Lap(6/epsilon), l = first r with m - q_(r+1) > Lap(12/epsilon) + G + T_r, none: l = n." S
   q m l is the probability that the search stops at l, given m. *)
Variable S : (I -> int) -> int -> nat -> R.
Hypothesis S_law : forall q m l,
  laplace_answer n (w^-1 ^+ 2) w^-1 (query q a1 a2 (fun r => a3 r) (fun r => margin r) m)
    l (S q m l).

Let w0 : 0 < w. Proof. exact: lt_trans w1. Qed.
Let wn k : 0 < w ^+ k. Proof. exact: exprn_gt0. Qed.
Let x01 k : (0 < k)%N -> 0 < w^-1 ^+ k < 1.
Proof. by move=> k0; rewrite exprn_gt0 ?invr_gt0 //= exprn_ilt1 ?invr_ge0 ?(ltW w0) ?invf_lt1 //
  -lt0n. Qed.
Let three : 3%:R != 0 :> R. Proof. by rewrite pnatr_eq0. Qed.

(* Each of the three tails. *)
Lemma tail_small (k : nat) (y e : R) : 0 < y -> y <= e ^+ k -> e^-1 ^+ k / 2%:R <= y^-1 / 2%:R.
Proof.
move=> y0 le; apply: ler_wpmul2r; first by rewrite invr_ge0 ler0n.
by rewrite exprVn lef_pinv ?posrE // (lt_le_trans y0).
Qed.

(* "the sum over r of delta/(6 r (r + 1)) <= delta/6" *)
Lemma telescope (k : nat) : \sum_(r < k) (r.+1 * r.+2)%:R^-1 = 1 - k.+1%:R^-1 :> R.
Proof.
elim: k => [|k IH]; first by rewrite big_ord0 invr1 subrr.
rewrite big_ord_recr /= IH -addrA; congr (_ + _).
have a : k.+1%:R != 0 :> R by rewrite pnatr_eq0.
have b : k.+2%:R != 0 :> R by rewrite pnatr_eq0.
have -> : (k.+1 * k.+2)%:R^-1 = k.+1%:R^-1 - k.+2%:R^-1 :> R.
  rewrite -[X in X - _]mul1r -[X in _ - X]mul1r -mulNr addf_div // mul1r mulN1r natrM.
  by rewrite -{2}[k.+2]addn1 natrD addrAC subrr add0r mul1r.
by rewrite addrA addNr add0r.
Qed.

(* "delta/3 + delta/6 + the sum of delta/(6 r (r + 1)) <= 2 delta/3" *)
Lemma tails_add_up :
  (w^-1 ^+ 4) ^+ a1 / 2%:R + ((w^-1 ^+ 2) ^+ a2 / 2%:R + \sum_(r < n) w^-1 ^+ a3 r / 2%:R) <=
  2%:R * delta / 3%:R.
Proof.
have h2 : 0 < 2%:R :> R by rewrite ltr0n.
have h3 : 0 < 3%:R :> R by rewrite ltr0n.
have t1 : (w^-1 ^+ 4) ^+ a1 / 2%:R <= delta / 3%:R.
  rewrite exprVn; apply: (le_trans (tail_small _ a1_large)).
    by rewrite divr_gt0 // mulr_gt0.
  by rewrite invf_div mulrAC [2%:R * delta]mulrC mulfK // gt_eqF.
have t2 : (w^-1 ^+ 2) ^+ a2 / 2%:R <= delta / 6%:R.
  rewrite exprVn; apply: (le_trans (tail_small _ a2_large)); first by rewrite divr_gt0.
  by rewrite invf_div -mulrA -invfM -natrM.
have t3 : \sum_(r < n) w^-1 ^+ a3 r / 2%:R <= delta / 6%:R.
  apply: (@le_trans _ _ (\sum_(r < n) delta / 6%:R * (r.+1 * r.+2)%:R^-1)).
    apply: ler_sum => r _; apply: (le_trans (tail_small _ (a3_large (ltn_ord r)))).
      by rewrite divr_gt0 ?ltr0n.
    by rewrite invf_div -!mulrA -!invfM -!natrM mulnC -[(3 * _ * _)%N]mulnA mulnA.
  rewrite -mulr_sumr telescope ler_pimulr ?divr_ge0 ?ler0n ?(ltW d0) //.
  by rewrite ler_subl_addr ler_addl invr_ge0 ler0n.
apply: (le_trans (ler_add t1 (ler_add t2 t3))).
have -> : delta / 6%:R + delta / 6%:R = delta / 3%:R.
  have -> : 6%:R = 3%:R * 2%:R :> R by rewrite -natrM.
  by rewrite -mulr2n -mulr_natr invfM mulrA divfK // gt_eqF.
by rewrite -mulrDl -mulr2n -[delta *+ 2]mulr_natl.
Qed.

Local Notation query' q := (query q a1 a2 (fun r => a3 r) (fun r => margin r)).
Local Notation found q o := (noisy_maximum (w^-1 ^+ 4) q o.1 * S q o.1 o.2).

(* "queries F_r = m - q_(r+1) - T_r of sensitivity 1 (Fact 1)" *)
Lemma query_near q q' m r : replace_by s q q' -> `|query' q' m r - query' q m r| <= s.
Proof.
move=> nb; rewrite /query [- (_ - threshold _ _ _ _ _)]opprB addrA subrK opprB addrC addrA subrK.
case: (ltnP r.+1 #|I|) => [lt|ge]; first by rewrite distrC; apply: stat_lipschitz.
by rewrite /stat !nth_default ?size_map ?size_ranking // subrr normr0.
Qed.

(* "(m, l) is 2 epsilon/3-private" *)
Lemma found_ge0 q (o : int * 'I_n.+1) : 0 <= found q o.
Proof.
have /andP[x0 x1] := x01 (isT : 0 < 4)%N; rewrite mulr_ge0 ?laplace_ge0 //.
by have [below _] := S_law q o.1 o.2; have := below [::] isT; rewrite big_nil.
Qed.

Lemma found_pure q q' (o : int * 'I_n.+1) : replace_by s q q' ->
  found q o <= w ^+ (8 * s) * found q' o.
Proof.
move=> nb; have K0 : (0 < #|I|)%N by apply: leq_ltn_trans nK.
have /andP[x0 x1] := x01 (isT : 0 < 4)%N; have /andP[y0 y1] := x01 (isT : 0 < 2)%N.
have /andP[z0 z1] := x01 (isT : 0 < 1)%N; rewrite expr1 in z0 z1.
have -> : w ^+ (8 * s) = (w^-1 ^+ 4)^-1 ^+ s * ((w^-1 ^+ 2)^-1 ^+ s * w^-1^-1 ^+ (s + s)).
  by rewrite !exprVn !invrK -!exprM -!exprD addnn -mul2n -!mulnDl.
rewrite mulrACA; apply: ler_pmul.
- exact: laplace_ge0.
- by have [below _] := S_law q o.1 o.2; have := below [::] isT; rewrite big_nil.
- exact: noisy_maximum_ratio.
apply: (laplace_answer_ratio (n := n) y0 y1 z0 z1 _ (S_law q o.1 o.2) (S_law q' o.1 o.2)) => r.
exact: query_near.
Qed.

(* A finite set of pairs (m, l) lies in one of some m and all l. *)
Lemma pairs_le (f : int * 'I_n.+1 -> R) (P : pred (int * 'I_n.+1)) (os : seq (int * 'I_n.+1)) :
  (forall o, 0 <= f o) -> uniq os ->
  \sum_(o <- os | P o) f o <= \sum_(m <- undup (map fst os)) \sum_(l | P (m, l)) f (m, l).
Proof.
move=> f0 us; rewrite [X in X <= _]big_mkcond /=.
have -> : \sum_(m <- undup (map fst os)) \sum_(l | P (m, l)) f (m, l) =
    \sum_(o <- [seq (m, l) | m <- undup (map fst os), l <- index_enum _]) (if P o then f o else 0).
  by rewrite big_allpairs; apply: eq_bigr => m _; rewrite [LHS]big_mkcond.
apply: part_sum => // [o||]; first by case: ifP.
  apply: allpairs_uniq; [exact: undup_uniq | exact: index_enum_uniq |].
  by move=> [m l] [m' l'] _ _ [-> ->].
move=> [m l] os_o; apply/allpairsP; exists (m, l); split=> //=; last exact: mem_index_enum.
by rewrite mem_undup; apply/mapP; exists (m, l).
Qed.

Lemma found_le1 q (os : seq (int * 'I_n.+1)) : uniq os -> \sum_(o <- os) found q o <= 1.
Proof.
move=> us; have /andP[x0 x1] := x01 (isT : 0 < 4)%N; have /andP[y0 y1] := x01 (isT : 0 < 2)%N.
have /andP[z0 z1] := x01 (isT : 0 < 1)%N; rewrite expr1 in z0 z1.
apply: (le_trans (pairs_le xpredT (@found_ge0 q) us)) => /=.
apply: (@le_trans _ _ (\sum_(m <- undup (map fst os)) noisy_maximum (w^-1 ^+ 4) q m)).
  apply: ler_sum => m _; rewrite -big_distrr /= ler_pimulr ?laplace_ge0 //.
  apply: (all_le1 (Z := laplace_cdf w^-1) _ _ _ (S_law q)); first exact: laplace_ge0.
    exact: laplace_cdf_in.
  by move=> s' us'; apply: laplace_sum.
have um : uniq (map (fun m => m - stat q 0) (undup (map fst os))).
  by rewrite map_inj_uniq ?undup_uniq // => a b /addIr.
by have := laplace_sum x0 x1 um; rewrite big_map.
Qed.

(* "Let V be the set of pairs (m, l) with l = K (in an open universe: l = R, the cap), or gap_l >
   t_l." *)
Definition certified q (o : int * 'I_n.+1) : bool :=
  (o.2 == n :> nat) || ~~ bad q (fun r => margin r) o.2.

(* "The certificate. P_D((m, l) not in V) <= 2 delta/3." *)
Lemma certificate q (os : seq (int * 'I_n.+1)) : uniq os ->
  \sum_(o <- os | ~~ certified q o) found q o <= 2%:R * delta / 3%:R.
Proof.
move=> us; apply: le_trans tails_add_up.
have z := x01 (isT : 0 < 1)%N; rewrite expr1 in z.
have um : uniq (undup (map fst os)) by apply: undup_uniq.
apply: le_trans (certificate_laplace (x01 (isT : 0 < 4)%N) (x01 (isT : 0 < 2)%N) z (S_law q) um).
apply: (le_trans (pairs_le _ (@found_ge0 q) us)); apply: ler_sum => m _ /=.
rewrite -big_distrr /= ler_wpmul2l //.
  by have /andP[x0 x1] := x01 (isT : 0 < 4)%N; apply: laplace_ge0.
rewrite big_mkcond big_ord_recr /= /certified /= eqxx addr0 [X in _ <= X]big_mkcond.
by apply: ler_sum => l _ /=; rewrite negb_or negbK (ltn_eqF (ltn_ord l)).
Qed.

Section Draw.
(* "A: draw i from the top l with weight exp(epsilon q_i / 6)", and release it as it is, or a dummy
   as nothing. What is drawn where the search stops nowhere is private without a margin. *)
Variables (O : finType) (release : I -> O) (at_end : (I -> int) -> O -> R).
Hypothesis at_end_law : forall q, is_law (at_end q).
Hypothesis at_end_private : private (@replace_by I s) at_end (w ^+ (4 * s)) (delta / 3%:R).

Definition draw q (l : 'I_n.+1) : O -> R :=
  if (l < n)%N then post (restricted (w ^+ 2) l.+1) release q else at_end q.

(* The probability of the triple (m, l, i). *)
Definition large_margin q (o : int * 'I_n.+1 * O) : R :=
  noisy_maximum (w^-1 ^+ 4) q o.1.1 * S q o.1.1 o.1.2 * draw q o.1.2 o.2.

(* "The draw. For (m, l) in V it is (epsilon/3, delta/3)-private." *)
Lemma draw_law q l : is_law (draw q l).
Proof.
rewrite /draw; case: ifP => [ln|_] //; apply: post_law; apply: restricted_law => //.
  by rewrite exprn_ege1 // ltW.
exact: leq_trans ln (ltnW nK).
Qed.

Lemma draw_close q q' o : replace_by s q q' -> certified q o ->
  close (draw q o.2) (draw q' o.2) (w ^+ (4 * s)) (delta / 3%:R).
Proof.
case: o => m l nb /=; rewrite /certified /draw /=; case: ltnP => [ln|_ _];
  last exact: at_end_private.
rewrite (ltn_eqF ln) /= /bad -ltNge => gap_l; apply: post_close.
have t1 : 1 <= w ^+ 2 by rewrite exprn_ege1 // ltW.
have -> : w ^+ (4 * s) = (w ^+ 2) ^ (s + s)%N by rewrite -exprnP -exprM addnn -mul2n mulnA.
apply: (proj1 (restricted_exponential_close t1 _ _ _ _)) => //.
- exact: leq_ltn_trans ln nK.
- by exists (- s%:Z); rewrite PoszD; apply: replace_moves.
rewrite /has_margin; apply: (@le_trans _ _ (delta / 3%:R * (w ^+ 2) ^+ margin l)); last first.
  apply: ler_wpmul2l; first by rewrite divr_ge0 ?ler0n ?(ltW d0).
  by rewrite exprnP; apply: ler_weexpz2l => //; apply: ltW.
apply: (le_trans _ (ler_wpmul2l _ (margin_large ln))); last by rewrite divr_ge0 ?ler0n ?(ltW d0).
rewrite -exprnP -exprM addnn -mul2n mulnA [X in _ <= X]mulrA natrM; apply: ler_wpmul2r.
  exact/ltW/wn.
by rewrite -[_ * _ / delta]mulrA [X in _ <= X]mulrA divfK // mulrC divfK // gt_eqF.
Qed.

(* The probabilities of all triples add up to one, where those of the noise do. *)
Theorem large_margin_law q :
  is_sum (laplace (w^-1 ^+ 4)) 1 -> is_sum (laplace (w^-1 ^+ 2)) 1 ->
  is_Pr (large_margin q) (fun=> True) 1.
Proof.
move=> [_ near] sumG; have D l := draw_law q l.
have S_total m : \sum_(l < n.+1) S q m l = 1.
  have /andP[y0 y1] := x01 (isT : 0 < 2)%N; have /andP[z0 z1] := x01 (isT : 0 < 1)%N.
  rewrite expr1 in z0 z1.
  pose part g (l : 'I_n.+1) := laplace (w^-1 ^+ 2) g * stops n (laplace_cdf w^-1) (query' q m) g l.
  have [below close] : is_sum (fun g => \sum_(l < n.+1) part g l) (\sum_(l < n.+1) S q m l).
    apply: (is_sum_big _ (v := fun l : 'I_n.+1 => S q m l)) => [l g|l _]; last exact: S_law.
    by rewrite mulr_ge0 ?laplace_ge0 ?stops_ge0 //; apply: laplace_cdf_in.
  have e g : \sum_(l < n.+1) part g l = laplace (w^-1 ^+ 2) g.
    by rewrite -big_distrr /= stop_total mulr1.
  apply: is_sum_unique sumG; split=> [s' us|e' e0].
    by apply: le_trans (below s' us); apply: ler_sum => g _; rewrite e.
  have [s' us lt] := close e' e0; exists s' => //; apply: lt_le_trans lt _.
  by apply: ler_sum => g _; rewrite e.
split=> [os us _|e e0].
  rewrite (@sum_triples _ _ _ (fun o : int * 'I_n.+1 => found q o) (fun o => draw q o.2)) //.
  apply: le_trans (found_le1 q (undup_uniq (map fst os))); apply: ler_sum => o _.
  by rewrite ler_pimulr ?found_ge0 // Pr_le1.
have [gs ug lt] := near e e0; pose ms := [seq g + stat q 0 | g <- gs].
pose pairs := [seq (m, l) | m <- ms, l <- index_enum [finType of 'I_n.+1]].
exists [seq (o, i) | o <- pairs, i <- index_enum O].
  split=> //; apply: allpairs_uniq; [|exact: index_enum_uniq|by move=> [? ?] [? ?] _ _ [-> ->]].
  apply: allpairs_uniq; [|exact: index_enum_uniq|by move=> [? ?] [? ?] _ _ [-> ->]].
  by rewrite map_inj_uniq // => a b /addIr.
apply: (lt_le_trans lt); rewrite big_allpairs /=.
have one o : \sum_i large_margin q (o, i) = found q o.
  by rewrite /large_margin /= -big_distrr /=; case: (D o.2) => _ ->; rewrite mulr1.
rewrite (eq_bigr _ (fun o _ => one o)) big_allpairs /= big_map; apply: ler_sum => g _.
by rewrite -big_distrr /= S_total mulr1 /noisy_maximum addrK.
Qed.

(* "Statement. Releasing the triple (m, l, i) is (epsilon, delta)-differentially private, under
   replace." Over all sets of triples. *)
Theorem large_margin_close :
  countably_private (@replace_by I s) large_margin (w ^+ (12 * s)) delta.
Proof.
apply: finite_sets_suffice => [|q q' nb os us]; first exact/ltW/wn.
have -> : w ^+ (12 * s) = w ^+ (8 * s) * w ^+ (4 * s) by rewrite -exprD -mulnDl.
have -> : delta = delta / 3%:R + 2%:R * delta / 3%:R.
  by rewrite -mulrDl -[X in X + _]mul1r -mulrDl -(natrD _ 1 2) mulrAC divff // mul1r.
apply: (@triples_close _ _ _ (fun o : int * 'I_n.+1 => found q o) (fun o => found q' o)
  (fun o => draw q o.2) (fun o => draw q' o.2) (certified q)) => //.
- exact/ltW/wn.
- exact/ltW/wn.
- by rewrite divr_ge0 ?ler0n ?(ltW d0).
- exact: found_ge0.
- exact: found_ge0.
- exact: found_le1.
- by move=> o; apply: draw_law.
- by move=> o i; case: (draw_law q' o.2).
- by move=> o; apply: found_pure.
- exact: certificate.
- by move=> o; apply: draw_close.
Qed.

End Draw.

(* "For l = K the draw is the exponential mechanism on all candidates, which is epsilon/3-private
   without a margin." A closed universe of K = n + 1 candidates. *)
Theorem large_margin_private : countably_private (@replace_by I s)
  (large_margin (@id I) (exponential (w ^+ 2))) (w ^+ (12 * s)) delta.
Proof.
have t1 : 1 <= w ^+ 2 by rewrite exprn_ege1 // ltW.
have K0 : (0 < #|I|)%N by apply: leq_ltn_trans nK.
apply: large_margin_close => [q|q q' nb]; first exact: exponential_law.
apply: (@close_le _ _ _ _ _ 0); first by rewrite divr_ge0 ?ler0n ?(ltW d0).
have -> : w ^+ (4 * s) = (w ^+ 2) ^ (s + s)%N by rewrite -exprnP -exprM addnn -mul2n mulnA.
by apply: exponential_private => //; exists (- s%:Z); rewrite PoszD; apply: replace_moves.
Qed.

(* "For l = R it is the constant nothing." An open universe: I holds the candidates and as many
   dummies as there are ranks to look at, n = R is the cap, and release says which are released as
   nothing. *)
Theorem large_margin_open_private (release : I -> option I) : countably_private (@replace_by I s)
  (large_margin release (fun _ o => (o == None)%:R)) (w ^+ (12 * s)) delta.
Proof.
have e1 : 1 <= w ^+ (4 * s) by rewrite exprn_ege1 // ltW.
apply: large_margin_close => [q|q q' nb].
  split=> [o|]; first exact: ler0n.
  by rewrite (bigD1 None) //= big1 ?addr0 // => o /negbTE->.
apply: (@close_le _ _ _ _ _ 0); first by rewrite divr_ge0 ?ler0n ?(ltW d0).
by apply: pointwise_close => o; rewrite ler_pemull ?ler0n.
Qed.

End LargeMargin.

(* "under replace and hence under add-remove" *)
Theorem replace_covers_add_remove (R : realFieldType) (I : finType) (O : eqType)
    (M : (I -> int) -> O -> R) (r delta : R) :
  countably_private (@replace I) M r delta -> countably_private (@add_remove I) M r delta.
Proof. by move=> priv q q' /add_remove_replace; apply: priv. Qed.
