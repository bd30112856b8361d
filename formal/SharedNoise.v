(* Noisy counts with noise of their own and noise that all of them share, and differences of counts.

   Pages: docs/proofs/counts.md ("Shared noise"), docs/proofs/ranked-margin.md ("Gaussian noise").
   Which noise it is enters by one hypothesis: that it covers every move of its numbers up to a
   distance. *)
From Privmax Require Import Prelude Definitions Scores LimitedDomain NoisyCounts RankedMargin.
From Coq Require Import Ring.

(* Two identities, in any commutative ring. *)
Section Identities.
Variables (T : Type) (zero one : T) (add mul sub : T -> T -> T) (opp : T -> T).
Hypothesis commutative : ring_theory zero one add mul sub opp eq.
Add Ring any_ring : commutative.
Local Notation "x + y" := (add x y).
Local Notation "x * y" := (mul x y).
Local Notation "x - y" := (sub x y).

Lemma one_coordinate (x y a b : T) : x * x + (a - b * ((y + x) * (y + x))) =
  a - b * (y * y) + x * (x * (one - b) - (b * y + b * y)).
Proof. ring. Qed.

Lemma complete_square (c i a q t : T) : c * i = one ->
  c * (t * t) - (t * a + t * a) + q = c * ((t - a * i) * (t - a * i)) + (q - a * a * i).
Proof. by move=> e; ring [e]. Qed.

Lemma by_powers (v w n a q t : T) :
  t * t * w + (q - (a * t + a * t) + n * (t * t)) * v =
  (w + n * v) * (t * t) - (t * (a * v) + t * (a * v)) + q * v.
Proof. ring. Qed.

Lemma cancel_once (v i a x : T) : i * v = one -> a * i * (a * i) * (v * x) = a * a * x * i.
Proof. by move=> e; ring [e]. Qed.

End Identities.

Lemma field_ring (R : realFieldType) : ring_theory (0 : R) 1 (fun x y => x + y) (fun x y => x * y)
  (fun x y => x - y) (fun x => - x) eq.
Proof.
split=> //; [exact: add0r | exact: addrC | exact: addrA | exact: mul1r | exact: mulrC |
  exact: mulrA | exact: mulrDl | exact: subrr].
Qed.

Section Distance.
(* v is the variance of own noise, h one over that of shared noise; 0 for differences. *)
Variables (R : realFieldType) (v h : R).
Hypotheses (v0 : 0 < v) (h0 : 0 <= h).

(* "j - j^2 w/(v + k w)", which is j - j^2/(v/w + k), and "the maximum over whole numbers" up to
   m. *)
Definition bend (k : nat) : R := (v * h + k%:R)^-1.
Definition spread (k m : nat) : R := \big[Num.max/0]_(j < m.+1) (j%:R - j%:R ^+ 2 * bend k).

(* "Delta^2 = S^2/v max_j (j - j^2 w/(v + k w)) + (1/w + k/v)/4" *)
Definition distance (k m S : nat) : R :=
  S%:R ^+ 2 / v * spread k m + (h + k%:R / v) / 4%:R.

Let room (k : nat) : (0 < k)%N -> 0 < v * h + k%:R.
Proof. by move=> k0; rewrite ltr_spaddr ?ltr0n // mulr_ge0 // ltW. Qed.

Let bend0 k : 0 <= bend k.
Proof. by rewrite invr_ge0 addr_ge0 ?ler0n // mulr_ge0 // ltW. Qed.

Let bend1 k : (0 < k)%N -> bend k <= 1.
Proof.
move=> k0; rewrite invf_le1 ?room //; apply: ler_paddl; last by rewrite ler1n.
by rewrite mulr_ge0 // ltW.
Qed.

Lemma below_max (f : nat -> R) n j : (j < n)%N -> f j <= \big[Num.max/0]_(i < n) f i.
Proof.
elim: n f j => [|n IH] f [|j] // jn; rewrite big_ord_recl le_maxr ?lexx //.
by rewrite (IH (fun i => f i.+1)) ?orbT.
Qed.

Lemma spread_ge k m j : (j <= m)%N -> j%:R - j%:R ^+ 2 * bend k <= spread k m.
Proof. exact: (@below_max (fun j => j%:R - j%:R ^+ 2 * bend k) m.+1). Qed.

(* "So on each box of m coordinates it is largest at a corner": one coordinate after the other, as
   the form is convex in each. *)
Lemma corner (b : R) (S : nat) (l : seq nat) (C : R) : 0 <= b <= 1 -> all (leq^~ S) l ->
  exists2 j, (j <= count (leq 1) l)%N &
  \sum_(x <- l) x%:R ^+ 2 - b * (C + \sum_(x <- l) x%:R) ^+ 2 <=
    j%:R * S%:R ^+ 2 - b * (C + j%:R * S%:R) ^+ 2.
Proof.
move=> /andP[b0 b1]; elim: l C => [|x l IH] C.
  by exists 0%N => //; rewrite !big_nil !mul0r.
case/andP=> xS lS; have [j jl le] := IH (C + x%:R) lS; rewrite !big_cons addrA.
case: x xS le => [|x] xS le; first by exists j; rewrite // expr0n add0r addr0 in le *.
set X : R := x.+1%:R in le *; have X0 : 0 <= X by apply: ler0n.
have XS : X <= S%:R by rewrite ler_nat.
set A := j%:R * S%:R ^+ 2 in le; set D := C + j%:R * S%:R.
have {}le : X ^+ 2 + (\sum_(x <- l) x%:R ^+ 2) - b * (C + X + \sum_(x <- l) x%:R) ^+ 2 <=
    X ^+ 2 + (A - b * (D + X) ^+ 2).
  rewrite -addrA ler_add2l; apply: (le_trans le); rewrite ler_add2l ler_opp2.
  by rewrite /D addrAC.
have expand y : y ^+ 2 + (A - b * (D + y) ^+ 2) =
    A - b * D ^+ 2 + y * (y * (1 - b) - (b * D + b * D)).
  by rewrite !expr2; apply: (one_coordinate (field_ring R)).
have [neg|pos] := lerP (S%:R * (1 - b)) (b * D + b * D).
  exists j; first by rewrite /= leqW.
  apply: (le_trans le); rewrite expand -ler_subr_addl subrr mulr_ge0_le0 //.
  by rewrite subr_le0 (le_trans _ neg) // ler_wpmul2r // subr_ge0.
exists j.+1; first by rewrite /= add1n ltnS.
apply: (le_trans le); have -> : j.+1%:R * S%:R ^+ 2 - b * (C + j.+1%:R * S%:R) ^+ 2 =
    S%:R ^+ 2 + (A - b * (D + S%:R) ^+ 2).
  by rewrite -[j.+1]addn1 natrD !mulrDl !mul1r -/A [A + _]addrC -addrA /D -[C + _ + _]addrA.
rewrite !expand ler_add2l; apply: (@le_trans _ _ (X * (S%:R * (1 - b) - (b * D + b * D)))).
  by apply: ler_wpmul2l => //; rewrite ler_add2r ler_wpmul2r // subr_ge0.
by apply: ler_wpmul2r => //; rewrite subr_ge0 ltW.
Qed.

(* "The nearest whole number is at most 1/2 away." *)
Lemma nearest (x : R) (N : nat) : 0 <= x <= N%:R -> exists t : nat, (x - t%:R) ^+ 2 <= 4%:R^-1.
Proof.
have half2 : (2%:R^-1 : R) ^+ 2 = 4%:R^-1 by rewrite exprVn -natrX.
have sq (y : R) : - 2%:R^-1 <= y <= 2%:R^-1 -> y ^+ 2 <= 4%:R^-1.
  move=> b; rewrite -half2 -real_normK ?num_real // ler_sqr ?nnegrE ?invr_ge0 ?ler0n //.
  by rewrite ler_norml.
elim: N => [|N IH] /andP[x0 xN].
  exists 0%N; have -> : x = 0 by apply/eqP; rewrite eq_le xN.
  by rewrite subrr expr0n invr_ge0 ler0n.
have [le|gt] := lerP x N%:R; first by apply: IH; rewrite x0.
have [le|gt'] := lerP x (N%:R + 2%:R^-1).
  exists N; apply: sq; rewrite ler_subl_addl le andbT (@le_trans _ _ 0) ?subr_ge0 ?(ltW gt) //.
  by rewrite oppr_le0 invr_ge0 ler0n.
exists N.+1; apply: sq; apply/andP; split; last first.
  by rewrite (@le_trans _ _ 0) ?subr_le0 // invr_ge0 ler0n.
have two_halves : 1 <= 2%:R^-1 + 2%:R^-1 :> R.
  by rewrite -mulr2n -[X in _ <= X]mulr_natr mulVf ?pnatr_eq0.
rewrite ler_subr_addl (le_trans _ (ltW gt')) // -[N.+1]addn1 natrD -addrA ler_add2l.
by rewrite ler_subl_addr.
Qed.

(* "So for every U there is a whole t with d(t)^2 <= Delta^2." *)
Lemma whole_shift (I : finType) (T : {set I}) (k m S : nat) (u : I -> nat) : (#|T| <= k)%N ->
  (forall i, u i <= S)%N -> (#|[set i in T | 0 < u i]| <= m)%N -> exists t : nat,
  t%:R ^+ 2 * h + (\sum_(i in T) ((u i)%:R - t%:R) ^+ 2) / v <= distance k m S.
Proof.
move=> Tk uS few; set n := #|T| in Tk; pose A : R := \sum_(i in T) (u i)%:R.
pose Q : R := \sum_(i in T) (u i)%:R ^+ 2; pose c := h + n%:R / v.
have spread0 : 0 <= S%:R ^+ 2 / v * spread k m.
  rewrite mulr_ge0 ?divr_ge0 ?exprn_ge0 ?ler0n ?(ltW v0) //.
  by have := @spread_ge k m 0 (leq0n m); rewrite expr0n mul0r subr0.
have [T0|Tpos] := posnP n.
  exists 0%N; have none i : i \in T = false by apply: card0_eq i.
  rewrite expr0n mul0r add0r big_pred0 // mul0r addr_ge0 // divr_ge0 ?ler0n // addr_ge0 //.
  by rewrite divr_ge0 ?ler0n // ltW.
have c0 : 0 < c by rewrite ltr_spaddr ?divr_gt0 ?ltr0n.
have A0 : 0 <= A by apply: sumr_ge0 => i _; apply: ler0n.
have vn : v != 0 by rewrite gt_eqF.
have near : 0 <= A / v / c <= (n * S)%:R.
  rewrite !divr_ge0 ?(ltW v0) ?(ltW c0) //= ler_pdivr_mulr // ler_pdivr_mulr //.
  have le : A <= (n * S)%:R.
    by rewrite natrM mulr_natl -sumr_const; apply: ler_sum => i _; rewrite ler_nat.
  apply: (@le_trans _ _ ((n * S)%:R * n%:R)).
    by apply: (le_trans le); rewrite -[X in X <= _]mulr1 ler_wpmul2l ?ler0n // ler1n.
  rewrite -mulrA ler_wpmul2l ?ler0n // /c mulrDl divfK // ler_addr.
  by rewrite mulr_ge0 // ltW.
have [t near_t] := nearest near; exists t.
have {}near_t : (t%:R - A / v / c) * (t%:R - A / v / c) <= 4%:R^-1.
  by rewrite -expr2 -sqrrN opprB.
have expand : t%:R ^+ 2 * h + (\sum_(i in T) ((u i)%:R - t%:R) ^+ 2) / v =
    c * ((t%:R - A / v / c) * (t%:R - A / v / c)) + (Q / v - (A / v) * (A / v) / c).
  have e : c * c^-1 = 1 by rewrite mulfV // gt_eqF.
  rewrite -(complete_square (field_ring R) (A / v) (Q / v) t%:R e).
  have -> : \sum_(i in T) ((u i)%:R - t%:R) ^+ 2 = Q - (A * t%:R + A * t%:R) + n%:R * t%:R ^+ 2.
    under eq_bigr do rewrite sqrrB.
    rewrite big_split /= big_split /= sumr_const -/Q -/n sumrN mulr_natl; congr (_ - _ + _).
    by rewrite -mulr2n sumrMnl -big_distrl.
  by rewrite !expr2; apply: (by_powers (field_ring R)).
rewrite expand /distance addrC; apply: ler_add; last first.
  apply: (@le_trans _ _ (c * 4%:R^-1)); first by apply: ler_wpmul2l => //; apply: ltW.
  apply: ler_wpmul2r; first by rewrite invr_ge0 ler0n.
  by rewrite ler_add2l ler_wpmul2r ?invr_ge0 ?(ltW v0) // ler_nat.
have k0 : (0 < k)%N := leq_trans Tpos Tk.
have b01 : 0 <= bend k <= 1 by rewrite bend0 bend1.
have fits : all (leq^~ S) [seq u i | i <- enum T] by apply/allP => x /mapP[i _ ->].
have [j jm cor] := corner 0 b01 fits.
have {}jm : (j <= m)%N.
  apply: (leq_trans jm); apply: leq_trans few; rewrite count_map -sum1_count -sum1dep_card.
  rewrite big_mkcond /= big_enum_cond /= [X in (_ <= X)%N]big_mkcond /=.
  by apply: eq_leq; rewrite big_mkcond /=; apply: eq_bigr => i _; rewrite andbT; case: (i \in T).
have as_bend : A / v * (A / v) / c = A ^+ 2 * bend n / v.
  have -> : c^-1 = v * bend n.
    rewrite /c /bend -[h in LHS](mulfK vn) [h * v]mulrC -mulrDl invfM invrK.
    by rewrite [LHS]mulrC.
  by rewrite expr2; apply: (cancel_once (field_ring R)); rewrite mulVf.
have bend_le : bend k <= bend n.
  by rewrite lef_pinv ?posrE ?room // ler_add2l ler_nat.
rewrite as_bend -mulrBl [X in _ <= X]mulrAC; apply: ler_wpmul2r; first by rewrite invr_ge0 ltW.
apply: (@le_trans _ _ (Q - bend k * A ^+ 2)).
  by rewrite ler_add2l ler_opp2 mulrC ler_wpmul2l ?exprn_ge0.
move: cor; rewrite !big_map !big_enum /= !add0r -/Q -/A => /le_trans; apply.
apply: (le_trans _ (ler_wpmul2l (exprn_ge0 2 (ler0n _ S)) (spread_ge k jm))).
rewrite mulrBr exprMn mulrC le_eqVlt; apply/orP; left; apply/eqP; congr (_ - _).
  by rewrite mulrC.
by rewrite mulrCA [bend k * _]mulrC.
Qed.

End Distance.

Lemma same_square (R : realFieldType) (a b : int) : `|a|%N = `|b|%N ->
  a%:~R ^+ 2 = b%:~R ^+ 2 :> R.
Proof.
move=> e; rewrite -[LHS]real_normK ?num_real // -[RHS]real_normK ?num_real //.
by rewrite -!intr_norm -!abszE e.
Qed.

(* "Under add-remove u is in [0, s]^n or [-s, 0]^n, with at most m coordinates other than 0." *)
Lemma moved_shift (R : realFieldType) (I : finType) (v h : R) (T : {set I}) (k m s parts : nat)
    (q q' : I -> int) : 0 < v -> 0 <= h -> (#|T| <= k)%N ->
  (forall i, q i <= q' i <= q i + s%:Z) \/ (forall i, q' i <= q i <= q' i + s%:Z) ->
  grows m q q' -> exists t : nat, t%:R ^+ 2 * h +
    (\sum_(i in T) ((`|(parts%:Z * (q' i - q i))%R|%N)%:R - t%:R) ^+ 2) / v <=
    distance v h k m (parts * s).
Proof.
move=> v0 h0 Tk moved few; apply: whole_shift => // [i|].
  rewrite abszM absz_nat leq_mul2l; apply/orP; right; rewrite -lez_nat abszE ler_norml.
  case: moved => /(_ i)/andP[a b].
    by rewrite ler_subl_addl b andbT (@le_trans _ _ 0) ?oppr_le0 // subr_ge0.
  rewrite ler_subr_addr addrC ler_subl_addr b /= ler_subl_addr.
  by apply: (le_trans a); rewrite ler_addr.
apply: leq_trans few; apply: subset_leq_card; apply/subsetP => i; rewrite !inE abszM.
by rewrite muln_gt0 !absz_gt0 subr_eq0 [q i == _]eq_sym => /andP[_ /andP[]].
Qed.

(* A set of at most k items is released, and its counts, a step divided into parts. *)
Section SharedCounts.
Variables (R : realFieldType) (I O : finType) (items : O -> {set I}) (k m s parts : nat).
Variables (own shared : int -> R) (rounded : int -> int).
Hypotheses (own_law : countable_law own) (shared_law : countable_law shared).
Hypothesis at_most : forall o, (#|items o| <= k)%N.

(* "R x_i" for the items, and 0 for what they share. *)
Definition counts_in_parts (q : I -> int) (o : O) : {ffun option I -> int} :=
  [ffun c => if c is Some i then if i \in items o then parts%:Z * q i else 0 else 0].

(* "Independent N_1, ..., N_k of one law, and Z of another". *)
Definition shared_noise (o : O) : {ffun option I -> int} -> R :=
  independent (fun c => if c is Some i then if i \in items o then own else @no_noise R else shared).

(* "y_i = R x_i + N_i + Z, released: y_i / R rounded"; rounded is any function. *)
Definition shared_counts (o : O) (y : {ffun option I -> int}) : {ffun I -> int} :=
  [ffun i => if i \in items o then rounded (y (Some i) + y None) else 0].

(* The noise covers every move of its numbers up to a distance of d: in squares, in units of the
   variances v of own noise and w of shared noise. *)
Definition covers_distance (v w d r delta : R) : Prop :=
  forall o (u : {ffun option I -> int}), (forall i, i \notin items o -> u (Some i) = 0) ->
  (u None)%:~R ^+ 2 / w + (\sum_i (u (Some i))%:~R ^+ 2) / v <= d ->
  countably_close (shared_noise o) (noisy (shared_noise o) u) r delta.

Lemma shared_noise_law o : countable_law (shared_noise o).
Proof.
apply: independent_law => -[i|] //; case: ifP => _ //.
exact: no_noise_law.
Qed.

(* "The shared noise moves too": by t, and the others by U - t. *)
Definition share (o : O) (t : int) : {ffun option I -> int} :=
  [ffun c => if c is Some i then if i \in items o then - t else 0 else t].

Lemma share_hides o y t : shared_counts o (y + share o t) = shared_counts o y.
Proof.
apply/ffunP => i; rewrite !ffunE; case: (i \in items o) => //.
by rewrite addrACA addNr addr0.
Qed.

(* "Under add-remove all counts move the same way": the whole release, at the sum of the costs. *)
Theorem shared_counts_private (choose : (I -> int) -> O -> R) v w r1 r2 delta1 delta2 :
  0 < v -> 0 < w -> 0 <= r1 -> 0 <= r2 -> 0 <= delta2 -> (forall q, is_law (choose q)) ->
  private (together m s) choose r1 delta1 ->
  covers_distance v w (distance v w^-1 k m (parts * s)) r2 delta2 ->
  counts_private (together m s) choose counts_in_parts shared_noise shared_counts (r1 * r2)
    (delta1 + delta2).
Proof.
move=> v0 w0 r10 r20 d20 laws priv covers; apply: selection_then_counts => //.
  exact: shared_noise_law.
move=> o q q' [moved few].
have h0 : 0 <= w^-1 by rewrite invr_ge0 ltW.
have [t near] := moved_shift parts v0 h0 (at_most o) moved few.
pose u i := `|(parts%:Z * (q' i - q i))%R|%N.
have move_sum (z : int) : `|z|%N = t ->
    (forall i, `|(parts%:Z * (q' i - q i) - z)%R|%N = `|((u i)%:Z - t%:Z)%R|%N) ->
    exists2 x : {ffun option I -> int}, forall y, shared_counts o (y + x) = shared_counts o y &
    countably_close (shared_noise o)
      (noisy (shared_noise o) (counts_in_parts q' o + x - counts_in_parts q o)) r2 delta2.
  move=> zt same; exists (share o z); first by move=> y; apply: share_hides.
  apply: covers => [i iS|]; first by rewrite !ffunE (negPf iS) !(addr0, oppr0).
  apply: le_trans near; rewrite !ffunE add0r subr0 ler_add //.
    by rewrite (same_square _ (_ : `|z|%N = `|t%:Z|%N)) ?absz_nat // pmulrn lexx.
  rewrite ler_wpmul2r ?invr_ge0 ?(ltW v0) // [X in _ <= X]big_mkcond; apply: ler_sum => i _.
  rewrite !ffunE; case: (i \in items o); last by rewrite !(addr0, oppr0) expr0n.
  have -> : parts%:Z * q' i + - z - parts%:Z * q i = parts%:Z * (q' i - q i) - z.
    by rewrite mulrBr addrAC.
  rewrite (same_square _ (same i)) rmorphB /=.
  by rewrite !pmulrn.
case: moved => moved; [apply: (move_sum t%:Z) | apply: (move_sum (- t%:Z))];
  rewrite ?abszN ?absz_nat // => i; have /andP[a b] := moved i.
  by rewrite /u gez0_abs // mulr_ge0 // subr_ge0.
rewrite opprK /u lez0_abs ?mulr_ge0_le0 // ?subr_le0 //.
by rewrite -abszN opprD.
Qed.

End SharedCounts.

(* An order from a set: "only differences" of noisy counts are released, so a common move of all of
   them is hidden without noise. *)
Section Differences.
Variables (R : realFieldType) (I O : finType) (items : O -> {set I}) (k m s parts : nat).
Variable own : int -> R.
Hypotheses (own_law : countable_law own) (at_most : forall o, (#|items o| <= k)%N).

(* "Rx", a step divided into parts. *)
Definition parts_of_counts (q : I -> int) (o : O) : {ffun I -> int} :=
  [ffun i => if i \in items o then parts%:Z * q i else 0].

(* "Delta^2 = (R^2 s^2 m_2 + k/4)/v": distance with no noise shared, as m_2 is the largest j - j^2/k
   up to m. *)
Theorem ranked_margin_covered (choose : (I -> int) -> O -> R) (v r1 r2 delta1 delta2 : R) :
  0 < v -> 0 <= r1 -> 0 <= r2 -> 0 <= delta2 -> (forall q, is_law (choose q)) ->
  private (together m s) choose r1 delta1 ->
  (forall o (u : {ffun I -> int}), (forall i, i \notin items o -> u i = 0) ->
    (\sum_i (u i)%:~R ^+ 2) / v <= distance v 0 k m (parts * s) ->
    countably_close (noise_on (items o) own) (noisy (noise_on (items o) own) u) r2 delta2) ->
  counts_private (together m s) choose parts_of_counts (fun o => noise_on (items o) own)
    (differences items) (r1 * r2) (delta1 + delta2).
Proof.
move=> v0 r10 r20 d20 laws priv covers; apply: selection_then_counts => //.
  by move=> o; apply: noise_on_law.
move=> o q q' [moved few].
have [t near] := moved_shift parts v0 (lexx 0) (at_most o) moved few.
have go (z : int) :
    (forall i, `|(parts%:Z * (q' i - q i) - z)%R|%N =
      `|((`|(parts%:Z * (q' i - q i))%R|%N)%:Z - t%:Z)%R|%N) ->
    exists2 x : {ffun I -> int}, forall y, differences items o (y + x) = differences items o y &
    countably_close (noise_on (items o) own)
      (noisy (noise_on (items o) own) (parts_of_counts q' o + x - parts_of_counts q o)) r2 delta2.
  move=> same; exists [ffun i => if i \in items o then - z else 0].
    by move=> y; apply: differences_shift.
  apply: covers => [i iS|]; first by rewrite !ffunE (negPf iS) !(addr0, oppr0).
  apply: le_trans near; rewrite mulr0 add0r ler_wpmul2r ?invr_ge0 ?(ltW v0) //.
  rewrite [X in _ <= X]big_mkcond; apply: ler_sum => i _; rewrite !ffunE.
  case: (i \in items o); last by rewrite !(addr0, oppr0) expr0n.
  have -> : parts%:Z * q' i + - z - parts%:Z * q i = parts%:Z * (q' i - q i) - z.
    by rewrite mulrBr addrAC.
  by rewrite (same_square _ (same i)) rmorphB /= !pmulrn.
case: moved => moved; [apply: (go t%:Z) | apply: (go (- t%:Z))] => i;
  have /andP[a b] := moved i.
  by rewrite gez0_abs // mulr_ge0 // subr_ge0.
rewrite opprK lez0_abs ?mulr_ge0_le0 // ?subr_le0 //.
by rewrite -abszN opprD.
Qed.

(* "Under replace t = 0 gives m s": differences gain nothing, Laplace noise is that of counts. *)
Theorem ranked_margin_replace (x : R) (choose : (I -> int) -> O -> R) r delta : 0 < x -> x < 1 ->
  0 <= r -> (forall q, is_law (choose q)) ->
  private (fun q q' => replace_by s q q' /\ grows m q q') choose r delta ->
  counts_private (fun q q' => replace_by s q q' /\ grows m q q') choose (true_counts items)
    (fun o => laplace_for x (items o)) (differences items) (r * x^-1 ^+ (minn k m * s))
    (delta + 0).
Proof.
move=> x0 x1 r0 laws priv d d' nb T a a' Pa Pa'.
have := laplace_counts_private x0 x1 at_most r0 laws priv nb.
by move=> /(_ (fun o => T (o.1, differences items o.1 o.2)) a a'); apply.
Qed.

End Differences.
