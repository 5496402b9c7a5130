// Package lostanswer has what is common to the searches for what a statement has done whose answer was lost, and
// undoes one kind of them: notifications that were taken to be published, by a statement whose caller does not
// learn which. They are marked as pending again.
package lostanswer
