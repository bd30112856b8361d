(* Differential privacy over finite sets of outcomes.

   Page: docs/proofs/README.md ("Conventions"), docs/proofs/clipping.md ("Ties").

   Probabilities are numbers of an ordered field R. The factor e^epsilon is a number r of R; no
   theorem needs the exponential function itself. A mechanism M maps data d and an outcome o to the
   probability of o. *)
From Privmax Require Import Prelude.

Section Privacy.
Variable R : realFieldType.

(* The probability of a set of outcomes. *)
Definition Pr (O : finType) (p : O -> R) (S : {set O}) : R := \sum_(o in S) p o.

(* A law: no probability is negative, and they add up to one. *)
Definition is_law (O : finType) (p : O -> R) : Prop :=
  (forall o, 0 <= p o) /\ \sum_o p o = 1.

(* "(epsilon, delta)-differential privacy: P(M(D) in S) <= e^epsilon P(M(D') in S) + delta for all
   neighbors and all sets S of outcomes."  Here r stands for e^epsilon. *)
Definition private (D : Type) (neighbors : D -> D -> Prop) (O : finType) (M : D -> O -> R)
    (r delta : R) : Prop :=
  forall d d', neighbors d d' -> forall S : {set O}, Pr (M d) S <= r * Pr (M d') S + delta.

(* The same for one pair of laws, from the first to the second. *)
Definition close (O : finType) (p p' : O -> R) (r delta : R) : Prop :=
  forall S : {set O}, Pr p S <= r * Pr p' S + delta.

(* The same where there are countably many outcomes, as with noise that takes every integer value.
   v is the probability of the set S: no finite part of S exceeds it, and some come as near as you
   like. *)
Definition is_Pr (O : eqType) (p : O -> R) (S : O -> Prop) (v : R) : Prop :=
  (forall s : seq O, uniq s -> {in s, forall o, S o} -> \sum_(o <- s) p o <= v) /\
  (forall e, 0 < e -> exists2 s : seq O, uniq s /\ {in s, forall o, S o} &
    v - e < \sum_(o <- s) p o).

Definition countably_private (D : Type) (neighbors : D -> D -> Prop) (O : eqType) (M : D -> O -> R)
    (r delta : R) : Prop :=
  forall d d', neighbors d d' -> forall (S : O -> Prop) v v',
  is_Pr (M d) S v -> is_Pr (M d') S v' -> v <= r * v' + delta.

Lemma Pr_ge0 (O : finType) (p : O -> R) S : (forall o, 0 <= p o) -> 0 <= Pr p S.
Proof. by move=> p0; apply: sumr_ge0. Qed.

Lemma Pr_le1 (O : finType) (p : O -> R) S : is_law p -> Pr p S <= 1.
Proof.
case=> p0 p1; rewrite /Pr -p1 [X in _ <= X](bigID (mem S)) /= ler_addl.
by apply: sumr_ge0.
Qed.

Lemma le_Pr (O : finType) (p p' : O -> R) (S : {set O}) :
  (forall o, o \in S -> p o <= p' o) -> Pr p S <= Pr p' S.
Proof. by move=> le; apply: ler_sum. Qed.

(* An inequality of every single outcome, but for a set that has probability at most delta, is
   enough. *)
Lemma close_but_for (O : finType) (p p' : O -> R) (B : {set O}) r delta :
  0 <= r -> (forall o, 0 <= p' o) ->
  (forall o, o \notin B -> p o <= r * p' o) -> (forall o, 0 <= p o) -> Pr p B <= delta ->
  close p p' r delta.
Proof.
move=> r0 p'0 good p0 bad S; rewrite /Pr (bigID (mem B)) /= addrC.
apply: ler_add; last first.
  apply: le_trans bad; rewrite /Pr [X in _ <= X](bigID (mem S)) /=.
  rewrite (eq_bigl (fun o => (o \in B) && (o \in S))) ?ler_addl ?sumr_ge0 // => o.
  by rewrite andbC.
rewrite big_distrr /= [X in _ <= X](bigID (mem B)) /= addrC -[X in X <= _]addr0.
apply: ler_add; last by apply: sumr_ge0 => o _; rewrite mulr_ge0.
by apply: ler_sum => o /andP[_ oB]; apply: good.
Qed.

(* "Where delta = 0": an inequality of every single outcome. *)
Lemma pointwise_close (O : finType) (p p' : O -> R) r :
  (forall o, p o <= r * p' o) -> close p p' r 0.
Proof.
move=> good S; rewrite addr0 /Pr big_distrr /=.
by apply: ler_sum => o _; apply: good.
Qed.

Lemma close_le (O : finType) (p p' : O -> R) r delta delta' :
  delta <= delta' -> close p p' r delta -> close p p' r delta'.
Proof. by move=> le cl S; apply: (le_trans (cl S)); rewrite ler_add2l. Qed.

Lemma part_sum (T : eqType) (f : T -> R) (s U : seq T) : (forall g, 0 <= f g) ->
  uniq s -> uniq U -> {subset s <= U} -> \sum_(g <- s) f g <= \sum_(g <- U) f g.
Proof.
move=> f0 us uU sub; rewrite [X in _ <= X](bigID (mem s)) /=.
have -> : \sum_(g <- s) f g = \sum_(g <- U | g \in s) f g.
  rewrite -[RHS]big_filter; apply: perm_big; apply: uniq_perm => //; first exact: filter_uniq.
  by move=> g; rewrite mem_filter; case: (boolP (g \in s)) => //= /sub ->.
by rewrite ler_addl; apply: sumr_ge0.
Qed.

(* Every finite set has a probability: so countably_private says at least what private says. *)
Lemma finite_Pr (O : eqType) (p : O -> R) (s : seq O) : (forall o, 0 <= p o) -> uniq s ->
  is_Pr p (fun o => o \in s) (\sum_(o <- s) p o).
Proof.
move=> p0 us; split=> [s' us' sub|e e0]; first by apply: part_sum => // o /sub.
by exists s; [split | rewrite ltr_subl_addr ltr_addl].
Qed.

Theorem countable_finite (D : Type) (neighbors : D -> D -> Prop) (O : eqType) (M : D -> O -> R)
    r delta : (forall d o, 0 <= M d o) -> countably_private neighbors M r delta ->
  forall d d', neighbors d d' -> forall s, uniq s ->
  \sum_(o <- s) M d o <= r * (\sum_(o <- s) M d' o) + delta.
Proof. by move=> M0 priv d d' nb s us; apply: (priv _ _ nb); apply: finite_Pr. Qed.

(* Where there are countably many outcomes, finite sets of them are enough. *)
Lemma finite_sets_suffice (D : Type) (neighbors : D -> D -> Prop) (O : eqType)
    (M : D -> O -> R) r delta : 0 <= r ->
  (forall d d', neighbors d d' -> forall s, uniq s ->
    \sum_(o <- s) M d o <= r * (\sum_(o <- s) M d' o) + delta) ->
  countably_private neighbors M r delta.
Proof.
move=> r0 fin d d' nb S v v' [_ near] [below _]; rewrite leNgt; apply/negP => lt.
have pos : 0 < v - (r * v' + delta) by rewrite subr_gt0.
have [s [us sS]] := near _ pos; rewrite subKr ltNge => /negP; apply.
by apply: (le_trans (fin _ _ nb s us)); rewrite ler_add2r; apply: ler_wpmul2l => //; apply: below.
Qed.

Lemma pointwise_countably_private (D : Type) (neighbors : D -> D -> Prop) (O : eqType)
    (M : D -> O -> R) r : 0 <= r ->
  (forall d d', neighbors d d' -> forall o, M d o <= r * M d' o) ->
  countably_private neighbors M r 0.
Proof.
move=> r0 good; apply: finite_sets_suffice => // d d' nb s _.
by rewrite addr0 big_distrr /=; apply: ler_sum => o _; apply: good.
Qed.

(* What close says of the mean of a number between 0 and 1. *)
Lemma close_mean (O : finType) (p p' : O -> R) r delta (f : O -> R) :
  0 <= r -> (forall o, 0 <= p' o) -> close p p' r delta -> (forall o, 0 <= f o <= 1) ->
  \sum_o p o * f o <= r * (\sum_o p' o * f o) + delta.
Proof.
move=> r0 p'0 pp' f01.
pose S := [set o | r * p' o < p o].
rewrite -ler_subl_addl big_distrr /= -sumrB.
have := pp' S; rewrite -ler_subl_addl /Pr big_distrr /= -sumrB; apply: le_trans.
rewrite (bigID (mem S)) /= -[X in _ <= X]addr0; apply: ler_add.
  apply: ler_sum => o; rewrite inE => lt; have /andP[_ f1] := f01 o.
  rewrite mulrA -mulrBl -[X in _ <= X]mulr1; apply: ler_wpmul2l => //.
  by rewrite subr_ge0 ltW.
rewrite -oppr_ge0 -sumrN; apply: sumr_ge0 => o; rewrite inE -leNgt => le.
have /andP[f0 _] := f01 o.
by rewrite mulrA -mulrBl -mulNr mulr_ge0 // oppr_ge0 subr_le0.
Qed.

(* The hockey-stick: "it is the same to ask that the sum of max(0, P(o) - e^epsilon P'(o)) be at
   most delta". *)
Theorem hockey_stick (O : finType) (p p' : O -> R) r delta :
  close p p' r delta <-> \sum_o Num.max 0 (p o - r * p' o) <= delta.
Proof.
split=> [pp'|le S].
  pose S := [set o | 0 < p o - r * p' o].
  have := pp' S; rewrite -ler_subl_addl /Pr big_distrr /= -sumrB; apply: le_trans.
  rewrite (bigID (mem S)) /= [X in _ + X]big1 ?addr0.
    by apply: ler_sum => o; rewrite inE => lt; rewrite max_r // ltW.
  by move=> o; rewrite inE -leNgt => le; rewrite max_l.
rewrite -ler_subl_addl /Pr big_distrr /= -sumrB; apply: le_trans le.
rewrite [X in _ <= X](bigID (mem S)) /= -[X in X <= _]addr0; apply: ler_add.
  by apply: ler_sum => o _; rewrite le_maxr lexx orbT.
by apply: sumr_ge0 => o _; rewrite le_maxr lexx.
Qed.

(* Post-processing: "to leave out the stage, or dummies, is post-processing". *)
Definition post (D : Type) (O O' : finType) (M : D -> O -> R) (f : O -> O') : D -> O' -> R :=
  fun d o' => \sum_(o | f o == o') M d o.

Lemma Pr_post (D : Type) (O O' : finType) (M : D -> O -> R) (f : O -> O') d S :
  Pr (post M f d) S = Pr (M d) (f @^-1: S).
Proof.
rewrite /Pr /post (partition_big f (mem S)) /=; last by move=> o; rewrite inE.
apply: eq_bigr => o' So'; apply: eq_bigl => o; rewrite inE.
by case: eqP => [->|]; rewrite ?So' ?andbF.
Qed.

Lemma post_close (D : Type) (O O' : finType) (M : D -> O -> R) (f : O -> O') d d' r delta :
  close (M d) (M d') r delta -> close (post M f d) (post M f d') r delta.
Proof. by move=> cl S; rewrite !Pr_post; apply: cl. Qed.

Lemma post_law (D : Type) (O O' : finType) (M : D -> O -> R) (f : O -> O') d :
  is_law (M d) -> is_law (post M f d).
Proof.
case=> p0 p1; split=> [o'|]; first by apply: sumr_ge0.
by rewrite -p1 /post [RHS](partition_big f xpredT).
Qed.

Theorem post_processing (D : Type) neighbors (O O' : finType) (M : D -> O -> R) (f : O -> O')
    r delta :
  private neighbors M r delta -> private neighbors (post M f) r delta.
Proof.
by move=> priv d d' nb; apply: post_close; apply: priv.
Qed.

(* Post-processing with coins of its own: k o o' is the probability of making o' from o. *)
Definition post_random (D : Type) (O O' : finType) (M : D -> O -> R) (k : O -> O' -> R) :
    D -> O' -> R :=
  fun d o' => \sum_o M d o * k o o'.

Theorem random_post_processing (D : Type) neighbors (O O' : finType) (M : D -> O -> R)
    (k : O -> O' -> R) r delta :
  0 <= r -> (forall d, is_law (M d)) -> (forall o, is_law (k o)) ->
  private neighbors M r delta -> private neighbors (post_random M k) r delta.
Proof.
move=> r0 lM lk priv d d' nb S.
have eq e : Pr (post_random M k e) S = \sum_o M e o * Pr (k o) S.
  rewrite /Pr /post_random exchange_big /=; apply: eq_bigr => o _.
  by rewrite big_distrr.
rewrite !eq; apply: close_mean => //; first by case: (lM d').
  exact: priv.
move=> o; rewrite Pr_le1 // andbT; apply: Pr_ge0.
by case: (lk o).
Qed.

(* "If a mechanism is (epsilon, delta)-private for every fixed order pi, it is (epsilon,
   delta)-private when pi is random and not released. Average both sides of the inequality over
   pi." *)
Definition mixture (D : Type) (T O : finType) (c : T -> R) (M : T -> D -> O -> R) : D -> O -> R :=
  fun d o => \sum_t c t * M t d o.

Theorem hidden_coin (D : Type) neighbors (T O : finType) (c : T -> R) (M : T -> D -> O -> R)
    r delta :
  is_law c -> (forall t, private neighbors (M t) r delta) ->
  private neighbors (mixture c M) r delta.
Proof.
move=> [c0 c1] priv d d' nb S.
have eq e : Pr (mixture c M e) S = \sum_t c t * Pr (M t e) S.
  rewrite /Pr /mixture exchange_big /=; apply: eq_bigr => t _.
  by rewrite big_distrr.
rewrite !eq big_distrr /= -[delta]mul1r -c1 big_distrl /= -big_split /=.
apply: ler_sum => t _.
rewrite mulrCA -mulrDr; apply: ler_wpmul2l => //; exact: priv.
Qed.

End Privacy.
